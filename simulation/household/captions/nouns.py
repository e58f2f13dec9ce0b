"""Nouns that captions use for objects and rooms."""

NOUNS: dict[str, tuple[str, ...]] = {
    "bottle": ("bottle",),
    "cup": ("cup", "mug"),
    "knife": ("knife",),
    "bowl": ("bowl",),
    "wine glass": ("wine glass", "glass"),
    "fork": ("fork",),
    "spoon": ("spoon",),
    "banana": ("banana",),
    "apple": ("apple",),
    "orange": ("orange",),
    "cake": ("cake",),
    "potted plant": ("potted plant", "plant", "house plant"),
    "mouse": ("mouse", "computer mouse"),
    "keyboard": ("keyboard",),
    "laptop": ("laptop", "laptop computer"),
    "cell phone": ("cell phone", "phone"),
    "book": ("book",),
    "clock": ("clock",),
    "chair": ("chair",),
    "dining table": ("table", "dining table"),
    "couch": ("couch", "sofa"),
    "bed": ("bed",),
    "toilet": ("toilet",),
    "television": ("television", "tv"),
    "computer monitor": ("computer monitor", "monitor", "computer screen"),
    "microwave": ("microwave",),
    "toaster": ("toaster",),
    "refrigerator": ("refrigerator", "fridge"),
    "oven": ("oven", "stove"),
    "sink": ("sink",),
    "person": ("person",),
    "window": ("window",),
    "door": ("door",),
    "desk": ("desk",),
    "coffee table": ("coffee table",),
    "nightstand": ("nightstand",),
    "cabinet": ("cabinet",),
    "shelf": ("bookshelf", "shelf"),
    "counter": ("counter", "kitchen counter"),
    "cupboard": ("cupboard",),
    "rug": ("rug",),
    "lamp": ("lamp",),
    "picture": ("picture", "framed picture"),
    "curtain": ("curtain",),
    "mirror": ("mirror",),
    "bathtub": ("bathtub",),
    "towel": ("towel",),
    "plate": ("plate",),
    "vase": ("vase",),
    "pot": ("pot",),
}
"""Singular nouns for an object by ``ObjectMesh.noun``; the first is used twice as often as each other one."""

ROOM_NOUNS: dict[str, tuple[str, ...]] = {"office": ("office", "home office", "study")}
"""Nouns for a kind of room that has further names."""

TYPICAL_OBJECTS: dict[str, set[str]] = {
    "kitchen": {"refrigerator", "oven", "sink", "microwave", "counter"},
    "living room": {"couch", "coffee table"},
    "bedroom": {"bed"},
    "office": {"desk"},
    "dining room": {"dining table"},
    "bathroom": {"toilet", "bathtub", "sink"},
}
"""Objects by which a kind of room is recognised; a frame without any of them is called a room."""

BACKGROUND_OBJECTS = {
    "picture",
    "curtain",
    "cupboard",
    "door",
    "window",
    "lamp",
    "counter",
    "rug",
    "mirror",
}
"""Classes that people rarely mention first."""
