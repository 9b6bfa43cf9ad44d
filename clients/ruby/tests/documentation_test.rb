# frozen_string_literal: true

# If this failed, `ri` would not know a method, or would know one that does not exist.

# The files in documentation/ name the methods that are written in C.
class DocumentationTest < Tests
  FILES = Dir[File.expand_path("../lib/leat/documentation/*.rb", __dir__)]

  def documented
    found = Hash.new { |all, name| all[name] = [] }
    type = "Leat"
    FILES.flat_map { |file| File.readlines(file) }.each do |line|
      type = "Leat" if line == "module Leat\n"
      type = "Leat::#{Regexp.last_match(1)}" if line =~ /^  class (\w+)/
      found[type] << Regexp.last_match(2) if line =~ /# :(singleton-)?method: (\S+)$/
    end
    found
  end

  def written_in_c(owner)
    methods = owner.instance_methods(false).map { |name| owner.instance_method(name) } +
              owner.singleton_methods(false).map { |name| owner.method(name) }
    methods.reject(&:source_location).map { |method| method.name.to_s }
  end

  def test_every_method_is_documented
    said = documented
    types = [Leat] + Leat.constants.map { |name| Leat.const_get(name) }.grep(Class)
    types.each do |type|
      next if type < Leat::Error || type == Leat::ClosedError

      equal(written_in_c(type).sort, said[type.name].sort)
    end
    check(said["Leat::Topic"].size > 15)
  end
end
