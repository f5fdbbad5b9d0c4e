"""Code for the checker's own tests: mistakes by their expected finding, and code without mistakes."""

PLANTED = {
    "unknown module": "import omni.isaac.core",
    "unknown module omni.kit.menu.tools": "import omni.kit.menu.tools",
    "unknown name omni.ui.Buton": "import omni.ui as ui\nui.Buton('a')",
    "unknown name omni.kit.menu.utils.MenuHelper": "from omni.kit.menu.utils import MenuHelper",
    "unknown name omni.usd.get_contex": "import omni.usd\nomni.usd.get_contex()",
    "unknown member omni.usd:UsdContext.get_stag": "import omni.usd\nomni.usd.get_context().get_stag()",
    "unknown member omni.ui:Label.txt": "import omni.ui as ui\nlabel = ui.Label('a')\nlabel.txt = 'b'",
    "unknown member omni.ui:DockPreference.CENTRE": "import omni.ui as ui\nui.DockPreference.CENTRE",
    "unknown member Panel.fram": "import omni.ui as ui\nclass Panel(ui.Window):\n def a(self): self.fram.rebuild()",
    "unknown member isaacsim.core.experimental.prims": (
        "from isaacsim.core.experimental.prims import Articulation\n"
        "def a(arm: Articulation): arm.set_joint_positions([0])"
    ),
    "call omni.ui:Label: no keyword 'colour'": "import omni.ui as ui\nui.Label('a', colour='red')",
    "call omni.ui:Button: no keyword 'on_click'": "import omni.ui as ui\nui.Button('a', on_click=None)",
    "no keyword 'on_evnt'": (
        "import carb.eventdispatcher as e\n"
        "e.get_eventdispatcher().observe_event(event_name='a', on_evnt=print, observer_name='b')"
    ),
    "2 positional arguments": (
        "from isaacsim.core.experimental.prims import XformPrim\ndef a(prim: XformPrim): prim.get_local_poses([0], [1])"
    ),
    "positional arguments, takes 0": (
        "from isaacsim.core.simulation_manager import SimulationManager\nSimulationManager.step(4)"
    ),
    "no keyword 'render'": (
        "from isaacsim.core.simulation_manager import SimulationManager\nSimulationManager.step(render=False)"
    ),
    "'resolution' is missing": (
        "from isaacsim.sensors.experimental.rtx import TiledCameraSensor\nTiledCameraSensor(['/a'], annotators=['rgb'])"
    ),
    "unknown annotator depth": (
        "from isaacsim.sensors.experimental.rtx import TiledCameraSensor\n"
        "TiledCameraSensor(['/a'], resolution=(2, 2), annotators=['rgb', 'depth'])"
    ),
    "deprecated member": (
        "from isaacsim.core.simulation_manager import SimulationManager\nSimulationManager.get_physics_dt()"
    ),
    "deprecated module isaacsim.core.prims": "from isaacsim.core.prims import SingleArticulation",
    "unknown setting /rtx/post/dlls/execMode": "import carb\nPATH = '/rtx/post/dlls/execMode'",
    "unknown extension isaacsim.core.physics": "import carb\nNAME = 'isaacsim.core.physics'",
    "unknown launch option headles": "from isaacsim import SimulationApp\nSimulationApp({'headles': True})",
    "unknown module curobo.wrap.reacher.motion_gen": "from curobo.wrap.reacher.motion_gen import MotionGen",
    "unknown name curobo.MotionPlanner": "from curobo import MotionPlanner",
    "unknown name curobo.scene.WorldConfig": "from curobo.scene import WorldConfig",
    "no keyword 'interpolation_dt'": (
        "from curobo.motion_planner import MotionPlannerCfg\nMotionPlannerCfg.create({}, interpolation_dt=0.02)"
    ),
    "unknown member curobo._src.solver.solver_trajopt_cfg:TrajOptSolverCfg.interpolation_time": (
        "from curobo.motion_planner import MotionPlannerCfg\n"
        "MotionPlannerCfg.create({}).trajopt_solver_config.interpolation_time = 0.02"
    ),
    "unknown member curobo._src.motion.motion_planner:MotionPlanner.plan_single": (
        "from curobo.motion_planner import MotionPlanner\ndef a(planner: MotionPlanner): planner.plan_single(1, 2)"
    ),
    "no keyword 'plan_config'": (
        "from curobo.motion_planner import MotionPlanner\n"
        "def a(planner: MotionPlanner): planner.plan_pose(1, 2, plan_config=3)"
    ),
    "no keyword 'warmup_joint_index'": (
        "from curobo.batch_motion_planner import BatchMotionPlanner\n"
        "def a(planner: BatchMotionPlanner): planner.warmup(warmup_joint_index=0)"
    ),
    "unknown member curobo._src.solver.solver_trajopt_result:TrajOptSolverResult.status": (
        "from curobo.motion_planner import MotionPlanner\n"
        "def a(planner: MotionPlanner): return float(planner.plan_pose(1, 2).status)"
    ),
    "unknown member curobo._src.collision.attachment_manager:AttachmentManager.attach_objects": (
        "from curobo.motion_planner import MotionPlanner\n"
        "def a(planner: MotionPlanner): planner.attachment_manager.attach_objects([])"
    ),
    "no keyword 'size'": "from curobo.scene import Cuboid\nCuboid(name='a', size=[1, 1, 1])",
    "unchecked .prims": "import omni.usd\nstage = omni.usd.get_context().get_stage()\nstage.prims",
    "unchecked result": "import omni.usd\ndef a():\n return omni.usd.get_context()",
}

RIGHT = """
import carb.settings
import omni.ui as ui
import omni.usd
from isaacsim.core.experimental.prims import XformPrim
from isaacsim.core.simulation_manager import SimulationManager
from isaacsim.sensors.experimental.rtx import TiledCameraSensor

class Panel(ui.Window):
    def __init__(self):
        super().__init__("a", width=3, visible=True)
        self.frame.set_build_fn(self.build)
        self.prims: dict[str, XformPrim] = {}

    def build(self):
        with ui.VStack(height=0):
            field = ui.StringField()
        field.model.set_value("a")
        for prim in self.prims.values():
            one: XformPrim = prim
            one.set_local_poses(translations=[[0, 0, 0]], indices=[0])

def main(sensor: TiledCameraSensor):
    SimulationManager.step(steps=4)
    data, info = sensor.get_data("rgb")
    carb.settings.get_settings().set("/rtx/post/dlss/execMode", 2)
    return data.numpy()
"""
