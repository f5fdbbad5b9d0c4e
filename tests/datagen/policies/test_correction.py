from __future__ import annotations

from pathlib import Path

from nimbus.datagen.policies.correction import _failed_rollout
from tests.support.refusals import refusal


def test_a_rollout_is_no_link_out_of_its_folder(tmp_path: Path):
    """The folder may come from others, and the rollout's content enters a dataset."""
    failures = tmp_path / "rollouts" / "failures"
    failures.mkdir(parents=True)
    (tmp_path / "private.hdf5").write_text("private")
    (failures / "e.a0.hdf5").write_text("")
    (failures / "e.a1.hdf5").symlink_to("e.a0.hdf5")
    assert _failed_rollout(tmp_path / "rollouts", "e").name == "e.a1.hdf5"
    (failures / "e.a2.hdf5").symlink_to("../../private.hdf5")
    assert "this is a link out of its folder" in refusal(_failed_rollout, tmp_path / "rollouts", "e")
