"""The private members of rclpy that are used exist, and work as expected."""

import threading

from rclpy.context import Context
from rclpy.executors import MultiThreadedExecutor
from rclpy.parameter import Parameter

from smart_caption_ros.nodes.rclpy_private import parameter_overrides, wait_for_callbacks


def test_the_values_given_to_parameters_are_known_before_the_parameters_are_declared():
    import rclpy
    from rclpy.node import Node

    context = Context()
    rclpy.init(args=["--ros-args", "-p", "misspelt:=3"], context=context)
    node = Node("given", context=context, parameter_overrides=[Parameter("rate", value=2)])
    assert {name: given.value for name, given in parameter_overrides(node).items()} == {"misspelt": 3, "rate": 2}
    node.destroy_node()
    context.try_shutdown()


def test_callbacks_of_an_executor_that_was_shut_down_are_waited_for(node):
    begun, may_end = threading.Event(), threading.Event()

    def work():
        begun.set()
        may_end.wait(20)

    node.create_timer(0.01, work)
    executor = MultiThreadedExecutor(num_threads=2, context=node.context)
    executor.add_node(node)
    spinning = threading.Thread(target=executor.spin, daemon=True)
    spinning.start()
    assert begun.wait(20)
    executor.shutdown()
    spinning.join(20)
    assert not wait_for_callbacks(executor, 0.2)
    may_end.set()
    assert wait_for_callbacks(executor, 20)
