"""attack_tables: the classes whose steps attacks/*.cases may use, by the name in their line `steps:`."""
from attack_steps import Steps
from holder_steps import AgentSteps, HeldSteps, TokenSteps
from joint_steps import JointSteps
from key_steps import KeySteps
from policy_steps import PolicySteps, WaiverSteps
from proof_steps import HeadSteps, StampSteps

STEPS = {
    one.__name__: one
    for one in (
        Steps,
        KeySteps,
        PolicySteps,
        WaiverSteps,
        StampSteps,
        HeadSteps,
        JointSteps,
        HeldSteps,
        AgentSteps,
        TokenSteps,
    )
}
