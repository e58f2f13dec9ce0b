from training.datagen.household.layout import ROOMS
from training.datagen.household.sequences import CAMERA_HEIGHTS, Settings, plan


def test_six_sequences_show_every_room_all_heights_and_both_lights() -> None:
    planned = [plan(Settings(frames=1), number) for number in range(6)]
    assert {sequence.scene.room.kind for sequence in planned} == set(ROOMS)
    assert {(sequence.camera_height, sequence.day) for sequence in planned} == {
        (h, d) for h in CAMERA_HEIGHTS for d in (True, False)
    }
    assert all(sequence.scene.lighting.day == sequence.day for sequence in planned)


def test_sequence_does_not_depend_on_how_many_frames_are_made() -> None:
    short, long = plan(Settings(frames=2), 3), plan(Settings(frames=5), 3)
    assert long.poses[:2] == short.poses
    assert long.look == short.look
    assert [item.shape.name for item in long.scene.items] == [item.shape.name for item in short.scene.items]


def test_another_seed_is_another_home() -> None:
    first, other = plan(Settings(frames=1), 0), plan(Settings(frames=1, seed=1), 0)
    assert first.scene.room != other.scene.room
    assert first.poses != other.poses
