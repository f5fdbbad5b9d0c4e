"""Temporary changes of the open stage, in a layer without a file; the stage's files do not change."""

from __future__ import annotations

from typing import Any


class StageVariation:
    """Layer of changes in the session layer of a stage; there is at most one."""

    def __init__(self) -> None:
        self._session: Any = None
        self._layer: Any = None

    def show(self, stage: Any, path: str) -> None:
        """Replace the changes of a stage by the layer in a file; an empty path only removes them.

        Args:
            stage: The open stage.
            path: File of the layer, from :func:`~nimbus.datagen.usd.stage_changes.write_stage_changes`.
        """
        from pxr import Sdf

        self.remove()
        if not path or stage is None:
            return
        source: Any = Sdf.Layer.FindOrOpen(path)
        layer: Any = Sdf.Layer.CreateAnonymous("nimbus.usda")
        layer.TransferContent(source)
        self._session, self._layer = stage.GetSessionLayer(), layer
        self._session.subLayerPaths.insert(0, layer.identifier)

    def remove(self) -> None:
        """Remove the changes, so that the stage is as in its files."""
        if self._session and self._layer and self._layer.identifier in list(self._session.subLayerPaths):
            self._session.subLayerPaths.remove(self._layer.identifier)
        self._session = self._layer = None
