"""Fixtures for tests of node processes in a separate ROS domain, with a node of a user."""

import time

import pytest

from smart_caption_ros.nodes.demo.processes import NodeProcess, ros_variables

TIMEOUT_S = 90.0
"""Maximum time of each wait, seconds; long enough for a busy machine."""

REPEATED_CALLS = frozenset(
    ("DescribeParameters", "GetParameters", "GetState", "SetBool", "SetParameters", "SetParametersAtomically")
)
"""Services whose second call changes nothing. rmw_fastrtps drops the answer to a client that the server has not matched
within 100 ms, which happens on a busy machine although the client sees the service: these are called again."""
REPEAT_AFTER_S = 15.0
MATCHING_S = 0.3
"""Time after which a publisher or client is matched by the other side as well, seconds; before, messages are lost."""


class Robot:
    """A ROS domain of its own: node processes, and a node that listens, publishes and calls."""

    def __init__(self, logs):
        import rclpy
        from rclpy.context import Context
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.node import Node

        self._logs = logs
        self._context = Context()
        rclpy.init(context=self._context)
        self.node = Node("user", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._processes = []
        self._clients = {}

    def start(self, module, *ros_args):
        """Starts `python -m MODULE --ros-args ...`; it ends with the test."""
        log = self._logs / f"{len(self._processes)}_{module.rpartition('.')[2]}.log"
        self._processes.append(NodeProcess(module, ros_args, log))
        return self._processes[-1]

    def start_caption_node(self, *ros_args, kind=""):
        """The caption node with a fake captioner; the kinds are in fake_engine_node.py."""
        return self.start("tests.system.fake_engine_node", *(["-p", f"bundle:={kind}"] if kind else []), *ros_args)

    def wait_for(self, condition, what, timeout_s=TIMEOUT_S):
        deadline_s = time.monotonic() + timeout_s
        while not (value := condition()):
            assert time.monotonic() < deadline_s, f"no {what} after {timeout_s:g} s\n{self.log_tails()}"
            self._executor.spin_once(timeout_sec=0.02)
        return value

    def spin_for(self, seconds):
        """Spins for a while, to see that something does not happen."""
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            self._executor.spin_once(timeout_sec=0.02)

    def listen(self, kind, topic, qos=100):
        """A list that grows with every message of the topic."""
        received = []
        self.node.create_subscription(kind, topic, received.append, qos)
        return received

    def publisher(self, kind, topic, qos=10, subscribers=1):
        """A publisher that somebody listens to."""
        publisher = self.node.create_publisher(kind, topic, qos)
        self.wait_for(lambda: publisher.get_subscription_count() >= subscribers, f"subscriber on {topic}")
        self.spin_for(MATCHING_S)
        return publisher

    def client(self, kind, name):
        if (kind, name) not in self._clients:
            self._clients[kind, name] = self.node.create_client(kind, name)
            self.wait_for(self._clients[kind, name].service_is_ready, f"service {name}")
            self.spin_for(MATCHING_S)
        return self._clients[kind, name]

    def call(self, kind, name, **fields):
        client = self.client(kind, name)
        self.wait_for(client.service_is_ready, f"service {name}")
        calls = [client.call_async(kind.Request(**fields))]
        started_s = time.monotonic()

        def answered():
            if kind.__name__ in REPEATED_CALLS and time.monotonic() - started_s > REPEAT_AFTER_S * len(calls):
                calls.append(client.call_async(kind.Request(**fields)))
            return next((call for call in calls if call.done()), None)

        return self.wait_for(answered, f"answer of {name}").result()

    def set_parameter(self, node, name, value):
        """Sets a parameter of another node; returns whether it was successful, and the reason if not."""
        from rcl_interfaces.srv import SetParameters
        from rclpy.parameter import Parameter

        parameter = Parameter(name, value=value).to_parameter_msg()
        (result,) = self.call(SetParameters, f"{node}/set_parameters", parameters=[parameter]).results
        return result

    def get_parameters(self, node, *names):
        from rcl_interfaces.srv import GetParameters

        return self.call(GetParameters, f"{node}/get_parameters", names=list(names)).values

    def lifecycle_state(self, node="/caption_node"):
        from lifecycle_msgs.srv import GetState

        return self.call(GetState, f"{node}/get_state").current_state.label

    def change_state(self, transition, node="/caption_node"):
        from lifecycle_msgs.msg import Transition
        from lifecycle_msgs.srv import ChangeState

        transition_message = Transition(id=getattr(Transition, f"TRANSITION_{transition.upper()}"))
        return self.call(ChangeState, f"{node}/change_state", transition=transition_message).success

    def log_tails(self):
        return "\n".join(f"--- {process.module}\n{process.log_tail(30)}" for process in self._processes)

    def close(self):
        for process in self._processes:
            process.stop()
        self._executor.shutdown()
        self.node.destroy_node()
        self._context.try_shutdown()


class Diagnostics:
    """The statuses of a caption node with one camera."""

    def __init__(self, robot):
        from diagnostic_msgs.msg import DiagnosticArray

        self._robot = robot
        self._received = robot.listen(DiagnosticArray, "/diagnostics")

    @property
    def status(self):
        """The newest one."""
        return self._received[-1].status[0]

    @property
    def values(self):
        return {pair.key: pair.value for pair in self.status.values}

    def wait_for(self, values=None, message=""):
        """Waits for a status with these values and these words in its message."""
        expected = (values or {}).items()
        self._robot.wait_for(
            lambda: self._received and expected <= self.values.items() and message in self.status.message,
            f"status with {values}: {message}",
        )

    def wait_for_next(self):
        """Waits for a status of what happens from now on."""
        seen = len(self._received)
        self._robot.wait_for(lambda: len(self._received) > seen + 1, "diagnostics")


@pytest.fixture
def ros_environment(monkeypatch, tmp_path):
    """A ROS domain that is this test's alone, for this process and those that it starts."""
    for name, value in ros_variables(tmp_path / "ros_logs").items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def shared_robot(tmp_path_factory):
    """A Robot for all tests of a module that leave its nodes as they found them."""
    folder = tmp_path_factory.mktemp("shared_robot")
    with pytest.MonkeyPatch.context() as environment:
        for name, value in ros_variables(folder / "ros_logs").items():
            environment.setenv(name, value)
        robot = Robot(folder)
        yield robot
        robot.close()


@pytest.fixture
def robot(ros_environment, tmp_path):
    robot = Robot(tmp_path)
    yield robot
    robot.close()


@pytest.fixture
def diagnostics(robot):
    return Diagnostics(robot)
