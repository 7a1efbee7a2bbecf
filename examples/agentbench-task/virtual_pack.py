"""What makes a pack of the task beside it: where the score is, and what it means that a sample is passed."""

from casewarden_sdk.agentbench import task_pack

PACK = task_pack("virtual_task:VirtualTask", id="virtual-task", score="score")
