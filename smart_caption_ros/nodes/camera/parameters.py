"""The parameters of the camera node."""

from smart_caption_ros.nodes.parameters import Changes, ParameterSpec

CAMERA_NODE_PARAMETERS: tuple[ParameterSpec, ...] = (
    ParameterSpec(
        "source",
        "sample:household",
        "What to publish: an image, a folder of images, sequences in the ACVR layout, a video file, a ROS 2 bag, the "
        "index of a webcam, or sample:household, the sequences in this package.",
        Changes.ONLY_AT_START,
        names_file=True,
    ),
    ParameterSpec(
        "every",
        1,
        "Publish every Nth frame of the source.",
        Changes.ONLY_AT_START,
        minimum=1,
        maximum=1_000_000,
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
        minimum=0.01,
        maximum=240.0,
    ),
    ParameterSpec(
        "loop",
        True,
        "Restart the source at its end; false ends the node there.",
        Changes.ANY_TIME,
    ),
    ParameterSpec(
        "max_frames",
        0,
        "Number of images after which the node ends; 0 sets no limit.",
        Changes.ONLY_AT_START,
        minimum=0,
        maximum=1_000_000_000,
    ),
    ParameterSpec(
        "frame_id",
        "camera_optical_frame",
        "Coordinate frame in the header of every image and camera_info: the optical frame of the camera, with x to the "
        "right, y down and z forward (REP 103).",
        Changes.ANY_TIME,
    ),
    ParameterSpec(
        "camera_info_url",
        "",
        "Calibration of the camera for camera_info, in the YAML format of camera_calibration: a path, file:// and a "
        "path, or package://PACKAGE/...; empty publishes the size of the images without a calibration.",
        Changes.ONLY_AT_START,
        names_file=True,
    ),
    ParameterSpec(
        "jpeg_quality",
        95,
        "JPEG quality of the compressed images.",
        Changes.ANY_TIME,
        minimum=1,
        maximum=100,
    ),
    ParameterSpec(
        "reliable",
        False,
        "Publish reliably with depth 10, instead of best effort with depth 1 as a camera driver does.",
        Changes.ONLY_AT_START,
    ),
    ParameterSpec(
        "wait_for_subscribers",
        0,
        "Number of subscribers, to images or compressed images, to wait for before the first image.",
        Changes.ONLY_AT_START,
        minimum=0,
        maximum=1000,
    ),
    ParameterSpec(
        "wait_timeout_s",
        30.0,
        "Maximum time to wait for these subscribers, and at the end for the acknowledgement of reliable images [s].",
        Changes.ONLY_AT_START,
        minimum=0.0,
        maximum=3600.0,
    ),
)
