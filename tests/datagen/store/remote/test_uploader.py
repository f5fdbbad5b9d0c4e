from __future__ import annotations

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError, StoreAwayError
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.stages import Rendered
from nimbus.datagen.store.remote import uploader as uploader_module
from nimbus.datagen.store.remote import working_copy
from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.datagen.store.remote.objects import ObjectStat
from nimbus.datagen.store.remote.send import ConflictError
from nimbus.datagen.store.remote.spool import open_spool
from nimbus.datagen.store.remote.uploader import Uploader, read_state
from nimbus.datagen.store.remote.uploads import Uploads
from nimbus.datagen.store.remote.working_copy import open_dataset
from nimbus.datagen.store.remote.writer_lock import LockNote, WriterLock
from nimbus.datagen.store.verify import dataset_hashes, verify
from tests.support.synthetic import make_rendered, write_dataset
from tests.support.synthetic import open_dataset as open_writer


def items(*indices: int) -> list[Rendered]:
    return [make_rendered(index) for index in indices]


@pytest.fixture(scope="module")
def local_hashes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("local") / "data"
    write_dataset(folder, items(0, 1, 2))
    return dataset_hashes(folder)


def make(address: str, count: int = 3) -> tuple[Path, Uploader]:
    """Return a spool with waiting episodes, and its outbox."""
    spool, store, lock = open_spool(parse_address(address))
    with open_writer(spool) as dataset:
        missing = [index for index in range(count) if not dataset.ledger.stored(index)]
    if missing:
        write_dataset(spool, items(*missing))
    return spool, Uploader(store, spool, lock)


def test_sent_dataset_equals_a_folders(address: str, local_hashes: dict[str, str]):
    spool, uploader = make(address)
    assert uploader.go_on() == 0 and not list(spool.glob("episodes/*"))
    uploader.publish()
    copy = open_dataset(address)
    assert len(list(copy.glob("episodes/*"))) == 3  # sent files are entries
    assert dataset_hashes(copy) == local_hashes and verify(copy).problems == ()
    assert read_state(spool).sent == 3


def test_snapshot_names_only_what_is_there(address: str):
    spool, uploader = make(address, 2)
    uploader.go_on()
    write_dataset(spool, items(2))
    uploader.publish()
    assert verify(open_dataset(address)).episode_count == 2 and verify(open_dataset(address)).problems == ()
    uploader.go_on()
    uploader.publish()
    assert verify(open_dataset(address)).episode_count == 3 and verify(open_dataset(address)).problems == ()


def publish_and_free(address: str) -> Path:
    """Publish two episodes and free the lock of the store; return the spool."""
    spool, uploader = make(address, 2)
    uploader.go_on()
    uploader.publish()
    assert uploader._lock
    uploader._lock.free()
    uploader.close()
    return spool


def test_run_continues_on_another_machine(address: str, local_hashes: dict[str, str]):
    spool = publish_and_free(address)
    shutil.rmtree(spool.parent.parent)
    spool, uploader = make(address, 3)
    with open_writer(spool) as dataset:
        assert dataset.ledger.row_count() == 3 and not dataset.outdated
    assert uploader.go_on() == 0
    uploader.publish()
    assert dataset_hashes(open_dataset(address)) == local_hashes


def test_interrupted_start_keeps_unsent_episodes(address: str, local_hashes: dict[str, str]):
    """A starting run was once killed after it had locked the store and before it had noted the lock in the spool; all
    unsent episodes were lost.
    """
    spool, uploader = make(address, 2)
    uploader.go_on()
    uploader.publish()
    uploader.close()
    write_dataset(spool, items(2))
    store = ObjectStore(parse_address(address))
    for _ in range(2):
        WriterLock(store, (spool / "owner").read_text()).take()
    uploader = Uploader(store, spool, open_spool(store.address)[2])
    assert len(list(spool.glob("episodes/*"))) == 1 and uploader.go_on() == 0
    uploader.publish()
    assert dataset_hashes(open_dataset(address)) == local_hashes


def test_interrupted_start_hides_no_other_machine(address: str):
    """Another machine wrote last, and the run that would have taken over its state was killed while starting."""
    spool = publish_and_free(address)
    write_dataset(spool, items(2))
    store = ObjectStore(parse_address(address))
    other = WriterLock(store, "other")
    other.take()
    other.free()
    WriterLock(store, (spool / "owner").read_text()).take()
    spool, _, _ = open_spool(store.address)
    assert not list(spool.glob("episodes/*"))
    with open_writer(spool) as dataset:
        assert dataset.ledger.row_count() == 2


def test_upload_whose_row_was_lost_is_adopted(address: str, local_hashes: dict[str, str]):
    spool, uploader = make(address)
    store = ObjectStore(parse_address(address))
    for path in spool.glob("episodes/*"):
        store.create(f"episodes/{path.name}", path)
    assert uploader.go_on() == 0
    uploader.publish()
    assert dataset_hashes(open_dataset(address)) == local_hashes


def test_foreign_object_in_an_episodes_place_is_refused(address: str):
    spool, uploader = make(address)
    path = sorted(spool.glob("episodes/*"))[0]
    ObjectStore(parse_address(address)).create(f"episodes/{path.name}", b"other")
    with pytest.raises(ConflictError, match="object of other content"):
        uploader.go_on()
    assert read_state(spool).state == "refused" and path.exists()


def test_files_wait_while_the_store_is_away(address: str, monkeypatch: pytest.MonkeyPatch):
    spool, uploader = make(address)
    create = ObjectStore.create

    def away(*_: object) -> bool:
        raise StoreAwayError("the store does not answer")

    monkeypatch.setattr(ObjectStore, "create", away)
    assert uploader.go_on() == 3 and read_state(spool).state == "away" and uploader.pause == 1.0
    monkeypatch.setattr(ObjectStore, "create", create)
    assert uploader.go_on() == 0 and uploader.pause < 1.0


def test_lost_object_is_made_again(address: str):
    spool, uploader = make(address)
    uploader.go_on()
    uploader.publish()
    uploader.close()
    import obstore

    store = ObjectStore(parse_address(address))
    name = working_copy.names_in(spool, "episodes")[0]
    obstore.delete(store._library.library, name)
    (working_copy.copy_folder(store.address) / name).unlink()
    open_spool(store.address)
    with open_writer(spool) as dataset:
        assert [path.name for path in dataset.outdated] == [Path(name).name]


def test_emptied_bucket_holds_nothing(address: str):
    """Objects that are recorded in a spool but missing in the bucket are made again."""
    spool, uploader = make(address)
    uploader.go_on()
    uploader.close()
    import obstore

    store = ObjectStore(parse_address(address))
    obstore.delete(store._library.library, [name for name, _ in store.names()])
    shutil.rmtree(working_copy.copy_folder(store.address))
    open_spool(store.address)
    with open_writer(spool) as dataset:
        assert len(dataset.outdated) == 3


def test_lock_is_renewed_during_a_long_upload(address: str, monkeypatch: pytest.MonkeyPatch):
    """Other runs take over a lock that was not renewed for 25 s."""
    spool, uploader = make(address, 1)
    assert uploader._lock
    beats: list[float] = []
    monkeypatch.setattr(uploader_module, "BEAT", 0.05)
    monkeypatch.setattr(uploader._lock, "renew", lambda: beats.append(time.monotonic()))
    create = ObjectStore.create

    def slow(store: ObjectStore, name: str, content: Path | bytes) -> bool:
        end = time.monotonic() + 60.0
        while len(beats) <= 3 and time.monotonic() < end:
            time.sleep(0.01)
        return create(store, name, content)

    monkeypatch.setattr(ObjectStore, "create", slow)
    assert uploader.go_on() == 0 and len(beats) > 3


def test_snapshot_that_failed_is_made_later(address: str, monkeypatch: pytest.MonkeyPatch):
    spool, uploader = make(address, 1)
    replace = ObjectStore.replace

    def away(*_: object) -> None:
        raise StoreAwayError("the store does not answer")

    monkeypatch.setattr(ObjectStore, "replace", away)
    uploader._lock = None
    uploader.go_on()
    monkeypatch.setattr(ObjectStore, "replace", replace)
    uploader.go_on()
    assert verify(open_dataset(address)).episode_count == 1


def test_suspended_run_replaces_no_ledger(address: str):
    """The run wakes up after another run has written: a snapshot is due, but no renewal of its lock."""
    _, uploader = make(address, 1)
    uploader.go_on()
    other = WriterLock(ObjectStore(parse_address(address)), "other", wait=lambda _: None)
    other.take()
    uploader._store.replace("ledger.sqlite", b"that of the other run")
    with pytest.raises(InputError, match="another run writes here"):
        uploader.publish()
    assert uploader._store.read("ledger.sqlite") == b"that of the other run"


def test_run_that_died_before_its_description_is_continued(address: str):
    """Another machine continues: kept failures, ledger and status are in the store before ``dataset.json``."""
    for name in ("failures/x.a0.hdf5", "incidents/n1-1/log", "ledger.sqlite", "manifest.parquet", "status.json"):
        ObjectStore(parse_address(address)).create(name, b"")
    _, uploader = make(address, 1)
    assert uploader.go_on() == 0 and verify(open_dataset(address)).episode_count == 1


def test_prefix_with_other_objects_is_refused(address: str):
    ObjectStore(parse_address(address)).create("holiday.jpg", b"")
    with pytest.raises(InputError, match=r"holds 'holiday.jpg' and no dataset.json"):
        open_spool(parse_address(address))


def test_second_writer_is_refused_until_the_first_is_silent(address: str):
    store = ObjectStore(parse_address(address))
    first = WriterLock(store, "first")
    first.take()
    with pytest.raises(InputError, match="another run writes here"):
        WriterLock(store, "second", wait=lambda _: first.renew()).take()
    WriterLock(store, "second", wait=lambda _: None).take()
    with pytest.raises(InputError, match="another run writes here"):
        first.renew()


def test_two_writers_at_the_same_moment_are_one(address: str):
    """Neither writer finds a lock; the writer that creates the object of the epoch gets it."""
    store = ObjectStore(parse_address(address))
    first, second = WriterLock(store, "first"), WriterLock(store, "second", wait=lambda _: first.renew())
    create = store.create

    def late(name: str, content: Path | bytes) -> bool:
        store.create = create  # type: ignore[method-assign]
        first.take()
        return create(name, content)

    store.create = late  # type: ignore[method-assign]
    with pytest.raises(InputError, match="another run writes here"):
        second.take()
    assert first.note and first.note.epoch == 1


def test_claim_of_a_dead_run_is_passed(address: str):
    """The run created the epoch's object and died before it wrote the lock; the object may also outlive the lock."""
    store = ObjectStore(parse_address(address))
    for epoch in (1, 2):
        store.create(f"journal/owner-{epoch:06d}.json", b"{}")
    waits: list[float] = []
    lock = WriterLock(store, "me", wait=waits.append)
    lock.take()
    assert lock.note and lock.note.epoch == 3 and len(waits) == 1


def test_overwritten_lock_leaves_the_right_where_it_is(address: str):
    """A run that was stopped between reading and renewing the lock writes the lock of an earlier epoch."""
    store = ObjectStore(parse_address(address))
    first, second = WriterLock(store, "first"), WriterLock(store, "second", wait=lambda _: None)
    first.take()
    old = store.read("lock.json")
    second.take()
    store.replace("lock.json", old)
    second.renew()
    with pytest.raises(InputError, match="another run writes here"):
        first.renew()


def test_run_between_two_of_this_machine_is_noticed(address: str):
    """The other run took the lock while this one was starting, and ended before this one had the lock."""
    store = ObjectStore(parse_address(address))
    mine, other = WriterLock(store, "me"), WriterLock(store, "other", wait=lambda _: None)
    mine.take()
    again, create = WriterLock(store, "me", wait=lambda _: None), store.create

    def late(name: str, content: Path | bytes) -> bool:
        store.create = create  # type: ignore[method-assign]
        other.take()
        other.free()
        return create(name, content)

    store.create = late  # type: ignore[method-assign]
    before = again.take()
    assert before and before.owner == "other" and again.was_taken_by_others(1, before)


def test_status_is_there_before_the_first_episode(address: str):
    """``nimbus status`` once reported no dataset until a minute after the first episode."""
    spool, store, lock = open_spool(parse_address(address))
    with pytest.raises(InputError, match="a run has begun here, and has published no episode yet"):
        open_dataset(address)
    uploader = Uploader(store, spool, lock)
    uploader.go_on()
    (spool / "status.json").write_text("{}")
    uploader.go_on()
    assert (open_dataset(address, may_be_empty=True) / "status.json").read_text() == "{}"
    with pytest.raises(InputError, match="no episode yet"):
        open_dataset(address)


def test_free_lock_is_taken_at_once(address: str):
    store = ObjectStore(parse_address(address))
    first = WriterLock(store, "first")
    first.take()
    first.free()

    def never(_: float) -> None:
        raise AssertionError("waited")

    second = WriterLock(store, "second", wait=never)
    second.take()
    assert second.note and second.note.epoch == 2


@pytest.mark.parametrize("address_of_none", ["s3://no-such-bucket-here/x"])
def test_missing_bucket_is_one_line(address: str, address_of_none: str):
    with pytest.raises(InputError, match="there is no bucket"):
        open_spool(parse_address(address_of_none))


def test_threads_note_objects_at_once(tmp_path: Path):
    uploads = Uploads(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: uploads.add([(f"episodes/{number}.hdf5", number)]), range(200)))
    assert all(uploads.has(f"episodes/{number}.hdf5") for number in range(200))
    uploads.close()


class AgreeingStore(ObjectStore):
    """Store of others in which the names of all epochs are taken."""

    def create(self, name: str, content: Path | bytes) -> bool:
        """Create nothing."""
        return False

    def stat(self, name: str) -> ObjectStat | None:
        """Find every object."""
        return ObjectStat(byte_count=1, etag="1")


def test_a_store_in_which_every_epoch_is_taken_is_refused(address: str):
    lock = WriterLock(AgreeingStore(parse_address(address)), "owner", wait=lambda _: None)
    with pytest.raises(InputError, match="number of every new run is taken"):
        lock.take()


@pytest.mark.parametrize("epoch", [0, -1, 10**30])
def test_a_lock_of_no_run_is_refused(address: str, epoch: int):
    store = ObjectStore(parse_address(address))
    store.create("lock.json", to_json(LockNote(owner="other", host="h", pid=1, epoch=epoch, is_free=True)).encode())
    with pytest.raises(InputError, match="not a lock of Nimbus"):
        WriterLock(store, "owner").take()
