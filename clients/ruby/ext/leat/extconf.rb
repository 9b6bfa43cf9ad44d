# Makes the Makefile of the extension: LEAT_LIBRARY=.../libleat.a LEAT_HEADER=.../src/capi ruby extconf.rb
#
# build.sh does that. The library is linked in, with hidden names, and so is the C++ runtime that it needs. It is never
# unloaded, as it has handlers of fork, and threads.
require "mkmf"

RbConfig::MAKEFILE_CONFIG["CC"] = ENV["CC"] if ENV["CC"]

here = __dir__
library = File.expand_path(ENV.fetch("LEAT_LIBRARY", "libleat.a"))
header = File.expand_path(ENV.fetch("LEAT_HEADER", File.join(here, "../../../../src/capi")))
$INCFLAGS << " -I#{header}"
$CFLAGS = "#{ENV.fetch("CFLAGS", "-O2")} -std=gnu11 -fPIC -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter"
$warnflags = ""
$LOCAL_LIBS << " #{library} -l:libstdc++.a"
$DLDFLAGS << " -Wl,--exclude-libs,ALL -Wl,-z,nodelete -static-libgcc -static-libstdc++ #{ENV["LDFLAGS"]}"
$DLDFLAGS << " -s" unless ENV["LEAT_KEEP_DEBUG"]
create_makefile("leat/leat")
