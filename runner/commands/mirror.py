"""``nimbus mirror A B``: copies a dataset between stores and folders; the cost is printed first."""

from __future__ import annotations

from typing import Annotated

import typer

from nimbus.runner.commands.options import AsJson
from nimbus.runner.system.output import write_json, write_out


def command(
    source: Annotated[str, typer.Argument(metavar="A", parser=str, help="folder or address of the dataset")],
    target: Annotated[str, typer.Argument(metavar="B", parser=str, help="folder or address of the copy")],
    *,
    only_plan: Annotated[bool, typer.Option("--plan", help="print the objects to copy and the cost, and exit")] = False,
    as_json: AsJson = False,
) -> int:
    """Copy the missing objects; after an interruption, the same command continues."""
    from nimbus.datagen.datasets.mirror import Mirror
    from nimbus.runner.monitor.output_summary import report_pending

    mirror = Mirror(source, target)
    plan = mirror.plan()
    figures = {
        "objects": len(plan.names),
        "bytes": plan.byte_count,
        "there": plan.there,
        "there_bytes": plan.there_bytes,
        "egress_cost": round(plan.cost, 4),
    }
    if as_json:
        write_json(figures)
    else:
        there = f", {plan.there} exist already" if plan.there else ""
        cost = f"; egress from the source costs about {plan.cost:.2f} USD at list price" if plan.price_per_gb else ""
        write_out(f"{len(plan.names)} objects, {plan.byte_count / 1e9:.2f} GB, to copy{there}{cost}\n")
    if only_plan:
        return 0
    mirror.copy(plan, report_pending)
    if not as_json:
        write_out(f"copied to: {mirror.target}\n")
    return 0
