"""Facts of a machine that reports fewer of them than usual."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen import machine


@pytest.mark.parametrize("text", [None, "", "MemTotal: 5 kB\n", "MemAvailable:\n", "MemAvailable: many kB\n"])
def test_free_memory_without_meminfo_is_known(monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    read = Path.read_text

    def spoilt(path: Path, *arguments: object, **options: object) -> str:
        if str(path) != "/proc/meminfo":
            return read(path, *arguments, **options)  # type: ignore[arg-type]
        if text is None:
            raise FileNotFoundError(path)
        return text

    monkeypatch.setattr(Path, "read_text", spoilt)
    assert machine.available_memory() > 1 << 20
