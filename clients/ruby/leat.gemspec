# frozen_string_literal: true

# A gem with the extension compiled, which build.sh puts into lib/leat: installing it compiles and downloads nothing.
Gem::Specification.new do |spec|
  spec.name = "leat"
  spec.version = ENV.fetch("LEAT_VERSION", "0.1.0")
  spec.platform = Gem::Platform.local
  spec.summary = "Topics in shared memory, which processes publish to and read from directly"
  spec.authors = ["The Leat authors"]
  spec.license = "Nonstandard"
  api = RbConfig::CONFIG["ruby_version"].split(".").first(2).map(&:to_i)
  spec.required_ruby_version = [">= #{api.join(".")}", "< #{api[0]}.#{api[1] + 1}.dev"]
  spec.files = Dir["lib/**/*", "README.md"]
end
