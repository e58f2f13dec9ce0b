"""The parameters of the camera node."""

from smart_caption_ros.nodes.parameters import Changes, ParameterSpec

CAMERA_NODE_PARAMETERS: tuple[ParameterSpec, ...] = (
    ParameterSpec(
        "source",
        "sample:household",
        "What to publish: an image, a folder of images, sequences in the ACVR layout, a video file, a ROS 2 bag, the "
        "index or /dev path of a webcam, an rtsp:// address, or sample:household, the sequences in this package.",
        Changes.ONLY_AT_START,
    ),
    ParameterSpec(
        "every",
        1,
        "Publish every Nth frame of the source.",
        Changes.ONLY_AT_START,
        limits=(1, 1_000_000),
    ),
    ParameterSpec(
        "publish_objects",
        False,
        "Publish the labelled objects of each sequence frame on `detections`, with the header of its image.",
        Changes.ONLY_AT_START,
    ),
    ParameterSpec(
        "bag_topic",
        "",
        "Image topic to read from a bag; empty reads the only one.",
        Changes.ONLY_AT_START,
    ),
    ParameterSpec(
        "rate_hz",
        2.0,
        "Images per second [Hz]; a slower webcam limits the rate.",
        Changes.ANY_TIME,
        limits=(0.01, 240.0),
    ),
    ParameterSpec(
        "loop",
        True,
        "Restart the source at its end; false ends the node there.",
        Changes.ANY_TIME,
    ),
    ParameterSpec(
        "frame_id",
        "camera_optical_frame",
        "Coordinate frame in the header of every image and camera_info: the optical frame of the camera, with x to the "
        "right, y down and z forward (REP 103).",
        Changes.ANY_TIME,
    ),
    ParameterSpec(
        "wait_for_subscribers",
        0,
        "Number of subscribers to images or compressed images that the first image waits for, two minutes at most.",
        Changes.ONLY_AT_START,
        limits=(0, 1000),
    ),
)
