"""The camera's path, projection, exposure, blur and noise."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation.household.camera import Camera, CameraPose, CameraResponse, photograph, random_response
from simulation.household.camera_path import CELL_SIZE, ROBOT_RADIUS, camera_path, clearance_map
from simulation.household.layout.random_scene import ROOM_KINDS, random_scene

CAMERA = Camera(320, 240)


@settings(max_examples=5)
@given(seed=st.integers(0, 2**16), kind=st.sampled_from(ROOM_KINDS), height=st.sampled_from([0.6, 1.0, 1.4]))
def test_path_is_smooth_and_keeps_clear_of_furniture(seed: int, kind: str, height: float) -> None:
    scene = random_scene(np.random.default_rng(seed), kind, day=True)
    poses = camera_path(scene, np.random.default_rng(seed), frames=150, step=0.03, height=height)
    places = np.array([[pose.x, pose.y] for pose in poses])
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    assert steps.max() <= 0.03 + 1e-9
    turns = np.abs(np.angle(np.exp(1j * np.diff([pose.heading for pose in poses]))))
    assert np.rad2deg(turns.max()) < 9
    assert np.rad2deg(np.abs(np.diff([pose.pitch for pose in poses])).max()) < 3
    clearance = clearance_map(scene, height)
    rows, columns = (np.clip((places[:, k] / CELL_SIZE).astype(int), 0, clearance.shape[1 - k] - 1) for k in (1, 0))
    assert clearance[rows, columns].min() > ROBOT_RADIUS - 0.075
    assert {pose.z for pose in poses} == {height}


def test_path_follows_from_its_seed() -> None:
    scene = random_scene(np.random.default_rng(1), "office", day=True)
    first, again, other = (
        camera_path(scene, np.random.default_rng(s), frames=5, step=0.1, height=1.0) for s in (3, 3, 4)
    )
    assert first == again
    assert first != other


def test_point_straight_ahead_is_projected_to_the_centre_and_others_to_their_sides() -> None:
    pose = CameraPose(1.0, 1.0, 1.0, np.pi / 2, 0.0)
    ahead, right, above = CAMERA.project(pose, np.array([[1.0, 3.0, 1.0], [1.5, 3.0, 1.0], [1.0, 3.0, 1.5]]))
    assert np.allclose(ahead, [160, 120])
    assert right[0] > 160
    assert np.isclose(right[1], 120)
    assert above[1] < 120
    edge = CAMERA.project(pose, np.array([[1.0 + 2 * np.tan(CAMERA.field_of_view / 2), 3.0, 1.0]]))[0]
    assert np.isclose(edge[0], 320)


def test_camera_that_looks_down_sees_the_floor_higher_up() -> None:
    floor = np.array([[1.0, 3.0, 0.0]])
    level = CAMERA.project(CameraPose(1.0, 1.0, 1.0, np.pi / 2, 0.0), floor)[0]
    down = CAMERA.project(CameraPose(1.0, 1.0, 1.0, np.pi / 2, -0.3), floor)[0]
    assert down[1] < level[1]


def light(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).gamma(1.0, 0.3, (24, 32, 3)).astype(np.float32)


@settings(max_examples=20)
@given(stops=st.floats(-6, 6))
def test_automatic_exposure_makes_a_room_as_bright_by_night_as_by_day(stops: float) -> None:
    usual = photograph(light(), CameraResponse(), np.random.default_rng(0))
    other = photograph(light() * np.float32(2**stops), CameraResponse(), np.random.default_rng(0))
    assert np.abs(usual.astype(int) - other).max() <= 4


def test_more_exposure_makes_the_photograph_brighter_and_a_gain_of_red_makes_it_redder() -> None:
    usual, bright, red = (
        photograph(light(), response, np.random.default_rng(0)).mean(axis=(0, 1))
        for response in (CameraResponse(), CameraResponse(exposure=1), CameraResponse(red=1.3))
    )
    assert (bright > usual).all()
    # BGR.
    assert red[2] > usual[2]
    assert np.isclose(red[0], usual[0], atol=1)


def test_blur_removes_detail_and_noise_adds_it() -> None:
    def detail(response: CameraResponse) -> float:
        return float(
            np.abs(np.diff(photograph(light(), response, np.random.default_rng(0)).astype(float), axis=1)).mean()
        )

    assert detail(CameraResponse(blur=1.5)) < 0.6 * detail(CameraResponse())
    flat = np.full((24, 32, 3), 0.2, np.float32)
    assert photograph(flat, CameraResponse(noise=0.03), np.random.default_rng(0)).std() > 2
    assert photograph(flat, CameraResponse(), np.random.default_rng(0)).std() == 0


def test_photograph_follows_from_its_seed_and_cameras_differ() -> None:
    responses = {random_response(np.random.default_rng(seed)) for seed in range(20)}
    assert len(responses) == 20
    response = responses.pop()
    first, again = (photograph(light(), response, np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(first, again)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_random_camera_gives_a_usable_photograph(seed: int) -> None:
    image = photograph(light(), random_response(np.random.default_rng(seed)), np.random.default_rng(0))
    assert image.dtype == np.uint8
    assert 40 < image.mean() < 215
