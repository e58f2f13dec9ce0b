"""One caption node with two cameras as a process: topics, detections, services and diagnostics of each."""

from diagnostic_msgs.msg import DiagnosticArray
from sensor_msgs.msg import Image
from smart_caption_ros.msg import BoundingBox, Caption, DetectedObject, DetectedObjectArray
from smart_caption_ros.srv import DescribeImage, DescribeLatest
from std_msgs.msg import Header, String

from tests.nodes.fake_captioner import image_fields

CAMERAS = ("front", "rear")
RELIABLE_INPUTS = tuple(
    argument
    for camera in CAMERAS
    for setting in ("reliability:=reliable", "depth:=100")
    for argument in ("-p", f"qos_overrides./{camera}/image.subscription.{setting}")
)


def test_two_cameras_share_a_node_and_nothing_of_them_is_mixed_up(robot):
    """The steps:

    1. Captions, texts and frames of each camera are on its topics, with its name.
    2. Detections reach the captions of their camera alone, although both cameras have the same stamps and frame.
    3. ~/describe_latest is of the newest image, ~/CAMERA/describe_latest of the camera's; ~/describe_image of none.
    4. The diagnostics have a status of the node and of each camera, and the counts of each camera add up.
    """
    robot.start_caption_node(
        "-p", "cameras:=[front, rear]", "-p", "max_age_s:=0.0", "-p", "detection_wait_s:=5.0", *RELIABLE_INPUTS
    )
    captions = {camera: robot.listen(Caption, f"/{camera}/caption") for camera in CAMERAS}
    texts = {camera: robot.listen(String, f"/{camera}/caption/text") for camera in CAMERAS}
    diagnostics = robot.listen(DiagnosticArray, "/diagnostics")
    images = {camera: robot.publisher(Image, f"/{camera}/image") for camera in CAMERAS}
    detections = {camera: robot.publisher(DetectedObjectArray, f"/{camera}/detections") for camera in CAMERAS}
    robot.wait_for(lambda: all(s.get_publisher_count() for s in robot.node.subscriptions), "publishers of captions")
    robot.spin_for(0.3)
    assert not robot.node.count_publishers("/robot/caption")

    published = {camera: [] for camera in CAMERAS}
    for number in range(1, 6):
        for camera, first_shade in zip(CAMERAS, (100, 200), strict=True):
            header = Header(frame_id="eye")
            header.stamp.sec = number
            published[camera].append(header)
            found = DetectedObject(
                class_name=f"thing {first_shade + number}", score=0.9, box=BoundingBox(x2=9.0, y2=9.0)
            )
            detections[camera].publish(DetectedObjectArray(header=header, objects=[found]))
            images[camera].publish(Image(header=header, **image_fields(first_shade + number)))
            robot.wait_for(lambda: len(captions[camera]) == number, f"caption of {camera}")  # noqa: B023
    for camera, first_shade in zip(CAMERAS, (100, 200), strict=True):
        shades = [f"{first_shade + number}" for number in range(1, 6)]
        assert [caption.text for caption in captions[camera]] == [f"shade {shade}" for shade in shades]
        assert [caption.header for caption in captions[camera]] == published[camera]
        assert {caption.camera for caption in captions[camera]} == {camera}
        objects = [[detected.class_name for detected in caption.objects] for caption in captions[camera]]
        assert objects == [[f"thing {shade}"] for shade in shades]
        robot.wait_for(lambda: len(texts[camera]) == 5, f"texts of {camera}")  # noqa: B023

    def described(service):
        caption = robot.call(DescribeLatest, f"/caption_node/{service}").caption
        return caption.text, caption.camera

    assert described("describe_latest") == ("shade 205", "rear")
    assert described("front/describe_latest") == ("shade 105", "front")
    sent = robot.call(DescribeImage, "/caption_node/describe_image", image=Image(**image_fields(7))).caption
    assert (sent.text, sent.camera, len(sent.objects)) == ("shade 7", "", 0)

    def reported():
        return {s.name: {v.key: v.value for v in s.values} for s in diagnostics[-1].status} if diagnostics else {}

    names = ("caption_node: captions", "caption_node: captions of front", "caption_node: captions of rear")
    robot.wait_for(
        lambda: (
            (found := reported())
            and tuple(found) == names
            and all(found[name]["images answered"] == "5" for name in names[1:])
        ),
        "diagnostics of both cameras",
    )
    found = reported()
    assert found[names[0]]["model"] == "fake model"
    assert [found[name]["images received"] for name in names[1:]] == ["5", "5"]
    assert [found[name]["image topic"] for name in names[1:]] == ["/front/image", "/rear/image"]
    assert [status.hardware_id for status in diagnostics[-1].status] == ["", "front", "rear"]
    assert robot.change_state("deactivate")
    robot.wait_for(lambda: not robot.node.count_subscribers("/rear/image"), "end of the subscriptions")
