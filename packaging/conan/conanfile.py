"""Leat for Conan 2:

    conan create packaging/conan --build=missing

Gives the CMake targets leat::leat, header-only, and leat::compiled.
"""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

required_conan_version = ">=2.1"


class Leat(ConanFile):
    name = "leat"
    description = "Messages between processes of one machine, through logs in shared memory"
    license = "Apache-2.0"
    topics = ("ipc", "shared-memory", "messaging", "publish-subscribe", "log")
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"fPIC": [True, False]}
    default_options = {"fPIC": True}

    @property
    def _tree(self):
        """The top of Leat's sources, beside this recipe's folder."""
        return os.path.join(self.recipe_folder, os.pardir, os.pardir)

    def set_version(self):
        text = load(self, os.path.join(self._tree, "CMakeLists.txt"))
        self.version = re.search(r"project\(leat VERSION ([\d.]+)", text).group(1)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/lib/*"):
            copy(self, pattern, self._tree, self.export_sources_folder)

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch != "x86_64":
            raise ConanInvalidConfiguration("Leat needs Linux on x86-64")
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["LEAT_TOOL"] = False
        toolchain.cache_variables["LEAT_CAPI"] = False  # The sources of the C library are not exported.
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        rmdir(self, os.path.join(self.package_folder, "share"))  # Conan makes its own of these.

    def package_info(self):
        self.cpp_info.set_property("cmake_target_name", "leat::all")  # leat::leat is a part of it.
        self.cpp_info.set_property("pkg_config_name", "leat-all")
        header_only = self.cpp_info.components["header_only"]
        header_only.set_property("cmake_target_name", "leat::leat")
        header_only.set_property("pkg_config_name", "leat")
        header_only.system_libs = ["pthread"]
        compiled = self.cpp_info.components["compiled"]
        compiled.set_property("cmake_target_name", "leat::compiled")
        compiled.set_property("pkg_config_name", "leat-compiled")
        compiled.requires = ["header_only"]
        compiled.libs = ["leat_compiled"]
        compiled.defines = ["LEAT_COMPILED"]
