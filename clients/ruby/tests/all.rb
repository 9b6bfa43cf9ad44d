# frozen_string_literal: true

# Runs the tests of the Ruby client: harness.rb says how.
$LOAD_PATH.unshift(__dir__)
require "harness"
%w[calls misuse messages documentation waits kept fibers].each { |name| require "#{name}_test" }

# A shell that starts the tests in the background makes them ignore it.
trap("INT", "DEFAULT")
$stdout.sync = true
exit(1) if Tests.run(ARGV).positive?
