import subprocess
import sys

from ottla.protocol.checksum import crc32c


def test_the_check_value_of_crc32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_every_kind_of_buffer_is_taken() -> None:
    assert crc32c(bytearray(b"123456789")) == 0xE3069283
    assert crc32c(memoryview(b"_123456789")[1:]) == 0xE3069283


def test_the_slow_parts_of_the_package_are_not_loaded() -> None:
    program = (
        "import sys, ottla.protocol.checksum\n"
        "sys.exit(sum(name in sys.modules for name in ('argparse', 'importlib.metadata', 'email')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
