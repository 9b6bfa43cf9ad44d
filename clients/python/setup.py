"""Makes the wheel: LEAT_LIBRARY=.../libleat.a LEAT_HEADER=.../src/capi python3 setup.py bdist_wheel

build.sh does that. The library is linked in, so the wheel needs nothing but Python, of any version from 3.11 on.
"""
import os
from glob import glob

from setuptools import Extension, setup

HERE = os.path.dirname(os.path.abspath(__file__))
os.chdir(HERE)
LIBRARY = os.environ.get("LEAT_LIBRARY", "libleat.a")
HEADER = os.environ.get("LEAT_HEADER", os.path.join(HERE, "..", "..", "src", "capi"))
VERSION = os.environ.get("LEAT_VERSION", "0.1.0")

setup(
    name="leat",
    version=VERSION,
    description="Topics in shared memory, which processes publish to and read from directly",
    long_description=open("README.md", encoding="utf-8").read(),
    long_description_content_type="text/markdown",
    license="see LICENSE",
    python_requires=">=3.11",
    package_dir={"": "src"},
    packages=["leat"],
    package_data={"leat": ["py.typed", "*.pyi"]},
    ext_modules=[
        Extension(
            "leat._leat",
            sources=sorted(glob("src/leat/*.c")),
            include_dirs=[HEADER],
            extra_objects=[LIBRARY],
            extra_compile_args=["-std=gnu11", "-O2", "-fvisibility=hidden", "-Wall", "-Wextra"],
            # The library is in C++; its own copy of that is as invisible as its other names. It is never
            # unloaded, as it has handlers of fork, and threads.
            extra_link_args=[
                "-Wl,--exclude-libs,ALL",
                "-Wl,-z,nodelete",
                "-static-libgcc",
                "-static-libstdc++",
                "-l:libstdc++.a",
                *([] if os.environ.get("LEAT_KEEP_DEBUG") else ["-s"]),
            ],
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
