"""``nimbus propose``: writes task files from goals, checked by the doctor and in physics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nimbus.datagen.episode.meaning import length_bin
from nimbus.datagen.errors import InputError, suggest
from nimbus.runner.commands.options import Budget, ModelName, NewFolder, Replay, Seed, Skills, open_model, whole
from nimbus.runner.commands.parser import path
from nimbus.runner.system.output import write_out

if TYPE_CHECKING:
    from nimbus.datagen.propose.proposals import Proposal


def command(
    words: Annotated[
        str, typer.Argument(metavar="WORDS", parser=str, help="subject of the tasks, in words, with --model")
    ] = "",
    *,
    count: Annotated[int, typer.Option("--count", metavar="N", parser=whole(1, 100_000), help="number of tasks")] = 10,
    seed: Seed = 0,
    out: NewFolder,
    robot: Annotated[str, typer.Option("--robot", metavar="NAME", parser=str, help="robot of the tasks")] = "panda",
    scene: Annotated[str, typer.Option("--scene", metavar="NAME", parser=str, help="scene with a table")] = "table",
    libraries: Annotated[
        list[str] | None,
        typer.Option("--library", metavar="NAME", parser=str, help="object library or its path; may be repeated (all)"),
    ] = None,
    families: Annotated[
        list[str] | None,
        typer.Option(
            "--family", metavar="NAME", parser=str, help="family of goals, such as pack; may be repeated (all)"
        ),
    ] = None,
    rounds: Annotated[
        int,
        typer.Option("--rounds", metavar="N", parser=whole(0, 10), help="number of rounds of repair after findings"),
    ] = 3,
    model: Annotated[
        str,
        typer.Option(
            "--model", metavar="URL", parser=str, help="address of an OpenAI-compatible server that writes the goals"
        ),
    ] = "",
    model_name: ModelName = "",
    budget: Budget = 1_000_000,
    replay: Replay = None,
    languages: Annotated[
        list[str] | None,
        typer.Option(
            "--language", metavar="NAME", parser=str, help="language of instructions; may be repeated (english)"
        ),
    ] = None,
    yields: Annotated[
        list[Path] | None,
        typer.Option(
            "--yields",
            metavar="DIR",
            parser=path,
            help="weight draws by the yields of a dataset, or of earlier proposals",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="make no attempts in physics")] = False,
    skills: Skills = None,
) -> int:
    """Write task files and ``proposals.jsonl``; return 1 if fewer tasks than requested are accepted."""
    from nimbus.runner.system.threads import prepare_libraries

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(
            "the path exists and is not an empty folder", where=f"--out {out}", instead="name a new folder"
        )
    prepare_libraries()
    from nimbus.datagen.propose.catalogue import Catalogue
    from nimbus.datagen.propose.drawing_weights import read_weights
    from nimbus.datagen.propose.grammar import FAMILIES, Vocabulary
    from nimbus.datagen.propose.grammar_source import GrammarSource
    from nimbus.datagen.propose.intent.source import ModelSource
    from nimbus.datagen.propose.proposals import ProposalRequest, Workshop, propose
    from nimbus.datagen.propose.wording.instructions import InstructionWriter
    from nimbus.datagen.robots.robot import load_robot
    from nimbus.datagen.store.folder import check_writable
    from nimbus.datagen.tasks.plugins import discover, discover_components

    check_writable(out)
    for name in families or ():
        if name not in FAMILIES:
            raise InputError(f"unknown family '{name}'", where="--family", instead=suggest(name, FAMILIES))
    writer = InstructionWriter.check(languages or (), seed=seed)
    asked = open_model(model, model_name, budget, replay, out) if model or replay else None
    if words and asked is None:
        instead = "give --model URL as well"
        raise InputError(f"tasks for the subject '{words[:60]}' need a model", where="WORDS", instead=instead)
    weights = read_weights(yields or ())
    discover_components()
    discover(skills or [])
    request = ProposalRequest(
        count=count, seed=seed, robot=robot, scene=scene, uses_physics=not quick, rounds=rounds, folder=out
    )
    catalogue = Catalogue(load_robot(robot, where="--robot"), libraries or ())
    source: GrammarSource | ModelSource
    workshop = Workshop.open(request, catalogue, lambda graph: writer.write(graph, catalogue, source.wordings(graph)))
    if asked is None:
        source = GrammarSource(
            Vocabulary(catalogue),
            seed=seed,
            robot=robot,
            scene=scene,
            families=families or (),
            weights=weights,
            has_room=workshop.has_room,
        )
    else:
        source = ModelSource(asked, catalogue, words, robot=robot, scene=scene, seed=seed, rounds=rounds)
    out.mkdir(parents=True, exist_ok=True)
    proposals: list[Proposal] = []
    for proposal in propose(workshop, source, out):
        proposals.append(proposal)
        write_out(f"{_line(proposal)}\n")
    write_out("".join(f"{line}\n" for line in ("", *summary(proposals))))
    if unusable := Counter(fault for proposal in proposals for fault in proposal.unusable).most_common(1):
        write_out(f"replies    not usable, most often ({unusable[0][1]} times) because: {unusable[0][0]}\n")
    if isinstance(source, ModelSource):
        write_out(f"tokens     {source.model.spent}{f'; {source.spent}' if source.spent else ''}\n")
    return 0 if sum(bool(proposal.name) for proposal in proposals) == count else 1


def _line(proposal: Proposal) -> str:
    if not proposal.trials:
        return f"refused    {len(proposal.unusable)} replies: {proposal.unusable[-1]}"
    trial = proposal.trials[-1]
    goals = ", ".join(
        f"{goal.relation}({', '.join(filter(None, (goal.object, goal.target)))})" for goal in trial.graph.goals
    )
    rounds = f", {len(proposal.trials) - 1} repaired" if len(proposal.trials) > 1 else ""
    if proposal.name:
        return f"{proposal.name}  {trial.steps} steps{rounds}: {goals}"
    return f"refused    at {trial.stage}{rounds}: {goals}: {next(iter(trial.messages()), '')}"


def summary(proposals: Sequence[Proposal]) -> Iterator[str]:
    """Yield the figures of proposals, one line each: acceptance, first attempts by length and relation, time."""
    if not proposals:
        return
    firsts = [proposal.trials[0] for proposal in proposals if proposal.trials]
    done = [proposal.accepted for proposal in proposals if proposal.accepted]
    seconds = sum(trial.seconds for proposal in proposals for trial in proposal.trials)
    clean = sum(trial.stage in ("physics", "accepted") for trial in firsts)
    yield f"accepted   {len(done)} of {len(proposals)}; {clean} as drawn, without findings of the doctor"
    tried = [trial for trial in firsts if trial.attempts]
    if tried:
        yield f"first try  {_share([trial.attempts[0].success for trial in tried])} succeed at their first attempt"
        lengths: dict[str, list[bool]] = {}
        relations: dict[str, list[bool]] = {}
        for trial in tried:
            lengths.setdefault(length_bin(trial.steps), []).append(trial.attempts[0].success)
            for relation in set(trial.graph.skeleton):
                relations.setdefault(relation, []).append(trial.attempts[0].success)
        yield "by steps   " + ", ".join(f"{name}: {_share(good)}" for name, good in sorted(lengths.items()))
        yield "by goal    " + ", ".join(f"{name}: {_share(good)}" for name, good in sorted(relations.items()))
        reasons = Counter(f"{a.phase} {a.reason}" for trial in tried for a in trial.attempts[:1] if not a.success)
        yield from (
            [f"failed     {', '.join(f'{what} ({n})' for what, n in reasons.most_common())}"] if reasons else []
        )
    yield f"CPU        {seconds / max(1, len(done)):.1f} s a task"


def _share(good: Sequence[bool]) -> str:
    return f"{sum(good)} of {len(good)}"
