"""Plans of sequences."""

from simulation.household.layout.random_scene import ROOM_KINDS
from simulation.household.sequences import CAMERA_HEIGHTS, RenderSettings, plan_sequence


def test_six_sequences_show_every_room_all_heights_and_both_lights() -> None:
    planned = [plan_sequence(RenderSettings(frames=1), number) for number in range(6)]
    assert {sequence.scene.room.kind for sequence in planned} == set(ROOM_KINDS)
    assert {(sequence.poses[0].z, sequence.scene.lighting.day) for sequence in planned} == {
        (height, day) for height in CAMERA_HEIGHTS for day in (True, False)
    }


def test_sequence_does_not_depend_on_how_many_frames_are_made() -> None:
    short, long = plan_sequence(RenderSettings(frames=2), 3), plan_sequence(RenderSettings(frames=5), 3)
    assert long.poses[:2] == short.poses
    assert long.response == short.response
    assert [each.mesh.class_name for each in long.scene.objects] == [
        each.mesh.class_name for each in short.scene.objects
    ]


def test_another_seed_gives_another_room_and_path() -> None:
    first, other = plan_sequence(RenderSettings(frames=1), 0), plan_sequence(RenderSettings(frames=1, seed=1), 0)
    assert first.scene.room != other.scene.room
    assert first.poses != other.poses
