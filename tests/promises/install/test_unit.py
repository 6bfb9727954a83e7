"""The unit for systemd: systemd takes it, and what it says of exit codes is what the errors have."""

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from catchment.model.errors import INTERRUPTED, ConfigError, WireError

UNIT = Path(__file__).parents[3] / "packaging" / "catchment@.service"


def test_systemd_takes_it(tmp_path: Path) -> None:
    if (verify := shutil.which("systemd-analyze")) is None:
        pytest.skip("systemd-analyze is not here")
    here = tmp_path / UNIT.name
    here.write_text(
        UNIT.read_text().replace(
            "/opt/catchment/bin/catchment", str(Path(sys.executable).parent / "catchment")
        )
    )
    done = subprocess.run([verify, "verify", here], capture_output=True, text=True, check=False)
    said = [line for line in (done.stdout + done.stderr).splitlines() if "catchment" in line]
    assert (done.returncode, said) == (0, [])


@pytest.mark.promise("which exit codes are worth a restart")
def test_what_is_worth_a_restart() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(UNIT)
    service = unit["Service"]
    assert service["SuccessExitStatus"] == str(INTERRUPTED)
    assert service["RestartPreventExitStatus"].split() == [
        str(ConfigError.exit_code),
        str(WireError.exit_code),
    ]
    assert service["ExecStart"].endswith("catchment run /etc/catchment/%i.yaml")
