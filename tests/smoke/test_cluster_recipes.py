"""The recipes of examples/clusters: their scripts run; recipes for a cluster's engine are checked and run without it.

Slurm really runs, on two nodes in network namespaces, if it is installed or CAFFE_SLURM_ROOT names its unpacked
packages (slurm_cluster.sh); Grid Engine likewise, with CAFFE_SGE_ROOT (sge_cluster.sh); torchrun if it is in PATH or
CAFFE_TORCHRUN names it.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
import yaml
from google.protobuf import text_format

from caffe.proto import caffe_pb2
from programs import BINARIES, PACKAGE, ROOT
from ranks import (  # noqa: F401 # pylint: disable=unused-import
    KINDS, bytes_of, environment, finish, free_port, hosts_in_namespaces, mpirun, start)

RECIPES = ROOT / "examples" / "clusters"
SCRIPTS = sorted([*RECIPES.rglob("*.sh"), *RECIPES.rglob("*.sbatch"), *RECIPES.rglob("*.sge"),
                  *(ROOT / "tests" / "smoke").glob("*_cluster.sh")])
SECRET = "a secret of the test"


def variables(**more):
    return {"PATH": f"{BINARIES}:{os.environ['PATH']}", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "PYTHONPATH": str(PACKAGE), **more}


@pytest.fixture(name="folder")
def folder_with_a_solver(tmp_path, solver, program):
    """A folder in which a recipe finds solver.prototxt."""
    program("caffe")
    solver("solver", max_iter=20, display=5, snapshot_prefix='"run"')
    return tmp_path


@pytest.fixture(name="expected")
def bytes_of_workers(folder, run):
    """The expected result of two ranks: the snapshot of two workers."""
    done = run(BINARIES / "caffe", "train", f"-solver={folder}/solver.prototxt", "-workers=2",
               f"--set=snapshot_prefix={folder}/workers", env=environment(folder, OMP_NUM_THREADS="2"))
    assert done.returncode == 0, done.stderr
    return bytes_of(folder, "workers", 20)["caffemodel"]


def trained(folder):
    return bytes_of(folder, "run", 20)["caffemodel"]


def run_recipe(folder, command, **more):
    [(status, said)] = finish(start(folder, [command], **variables(**more)))
    assert status == 0, said
    return said


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_have_no_lint(script):
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    done = subprocess.run(["shellcheck", "-x", script], check=False, text=True, stdout=subprocess.PIPE)
    assert done.stdout == ""


def test_every_recipe_is_in_the_readme():
    text = (RECIPES / "README.md").read_text()
    linked = {RECIPES / name for name in re.findall(r"\]\(([^)#:]+)\)", text)}
    files = {file for file in RECIPES.rglob("*") if file.is_file() and file.name != "README.md"}
    assert {file.relative_to(RECIPES) for file in files - linked} == set()
    assert all(file.exists() for file in linked)


def test_the_common_failures_have_the_programs_words():
    page = (ROOT / "docs" / "clusters.md").read_text()
    rows = re.search(r"## Common failures\n\n.*\n.*\n((?:\|.*\n)+)", page)[1].splitlines()
    sources = "".join(file.read_text() for folder in ("src/caffe/distributed", "src/caffe/mpi", "src/caffe/solvers") for file in
                      (ROOT / folder).rglob("*.cpp"))
    sources = re.sub(r'"\s*\n\s*"', "", sources)  # joins adjacent literals
    for row in rows:
        for quote in re.findall(r"`([^`]+)`", row.split("|")[1]):
            for words in re.split(r"\d+ s$|(?<=rank 0) in |srun$", quote):  # variable parts
                assert words.strip() in sources, quote


# mpirun and Python.

def test_mpirun_on_one_machine(folder, expected):
    mpirun(2)
    said = run_recipe(folder, [RECIPES / "mpirun" / "one_machine.sh", "solver.prototxt", "2"])
    assert "Optimization Done." in said
    assert trained(folder) == expected


MACHINE = """hostname "$0" && mount --bind "$1" /etc/hosts && shift && exec "$@\""""


def on_machine(namespace, name, hosts_file, *command):
    """A command in a namespace, with its own host name and its own list of hosts."""
    return ["ip", "netns", "exec", namespace, "unshare", "--uts", "--mount", "--propagation", "private", "sh", "-c", MACHINE,
            name, str(hosts_file), *command]


@pytest.fixture(name="machines")
def two_machines(hosts, folder):
    """Prefixes that start a command on node1 or node2."""
    names, _ = hosts
    file = folder / "etc_hosts"
    file.write_text("127.0.0.1 localhost\n10.77.0.1 node1 machine0\n10.77.0.2 node2 machine1\n")
    return lambda number, name, *command: on_machine(names[number - 1], name, file, *command)


def test_mpirun_on_several_machines(folder, expected, machines):
    mpirun(2)
    agent = folder / "agent.sh"  # replaces ssh
    agent.write_text("#!/bin/sh\nshift\nexec " + shlex.join(machines(2, "node2", "sh", "-c")) + ' "$*"\n')
    agent.chmod(0o755)
    (folder / "hosts").write_text((RECIPES / "mpirun" / "hosts").read_text().replace("slots=2", "slots=1"))
    command = machines(1, "node1", str(RECIPES / "mpirun" / "several_machines.sh"), "solver.prototxt", "hosts")
    said = run_recipe(folder, command, OMPI_MCA_plm_rsh_agent=str(agent))
    assert "Optimization Done." in said
    assert trained(folder) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_mpi_between_machines_makes_the_bytes_of_threads(kind, folder, machines, run, solver):
    """Gradients over TCP and MPI, with two and four ranks on two machines."""
    mpirun(2)
    agent = folder / "agent.sh"
    agent.write_text("#!/bin/sh\nshift\nexec " + shlex.join(machines(2, "node2", "sh", "-c")) + ' "$*"\n')
    agent.chmod(0o755)
    for ranks in (2, 4) if kind == "sgd" else (2,):
        path = solver("threads", max_iter=20, **KINDS[kind])
        done = run(BINARIES / "caffe", "train", f"-solver={path}", f"-workers={ranks}",
                   env=environment(folder, OMP_NUM_THREADS=str(ranks)))
        assert done.returncode == 0, done.stderr
        path = solver("ranks", max_iter=20, **KINDS[kind])
        for engine in (["-store=node1:29500"], []):  # TCP, MPI
            run_recipe(folder, machines(1, "node1", "mpirun", "-host", f"node1:{ranks // 2},node2:{ranks // 2}", "-np", str(ranks),
                                        "-x", "CAFFE_SECRET", "-x", "PATH", "-x", "OMP_NUM_THREADS", str(BINARIES / "caffe"), "train",
                                        f"-solver={path}", *engine),
                       OMPI_MCA_plm_rsh_agent=str(agent), CAFFE_SECRET=SECRET)
            trained_by_ranks = folder / "ranks_iter_20.caffemodel"
            assert trained_by_ranks.read_bytes() == (folder / "threads_iter_20.caffemodel").read_bytes(), engine
            trained_by_ranks.unlink()


def test_python_under_mpirun(folder, expected):
    said = run_recipe(folder, mpirun(2, "/usr/bin/env", "OMP_NUM_THREADS=1", sys.executable, RECIPES / "mpirun" / "train.py"))
    assert trained(folder) == expected, said


# torchrun.

def test_torchrun(folder, expected):
    torchrun = os.environ.get("CAFFE_TORCHRUN") or shutil.which("torchrun")
    if torchrun is None:
        pytest.skip("torchrun is not in PATH, and CAFFE_TORCHRUN does not name it (pip install torch)")
    path = f"{os.path.dirname(torchrun)}:{variables()['PATH']}"
    said = run_recipe(folder, [RECIPES / "torchrun" / "train.sh", "solver.prototxt", "2"], PATH=path)
    assert "Optimization Done." in said
    assert trained(folder) == expected


# Slurm.

def need_slurm():
    root = os.environ.get("CAFFE_SLURM_ROOT", "")
    path = f"{root}/usr/sbin:{root}/usr/bin:{os.environ['PATH']}:/usr/sbin"
    if not all(shutil.which(f"{name}-wlm", path=path) or shutil.which(name, path=path) for name in ("slurmctld", "slurmd")):
        pytest.skip("Slurm is not installed (slurmctld, slurmd), and CAFFE_SLURM_ROOT does not name its unpacked packages")
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")


def in_slurm(folder, script):
    """Runs a script on the first of two nodes; returns its output."""
    need_slurm()
    (folder / "steps.sh").write_text("set -eu\n" + script)
    done = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child",
                           ROOT / "tests" / "smoke" / "slurm_cluster.sh", folder / "slurm", "sh", "steps.sh"],
                          cwd=folder, text=True, check=False, timeout=300, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=environment(folder, **variables()))
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def test_srun_on_two_nodes(folder, expected):
    said = in_slurm(folder, "srun --mpi=pmix --nodes=2 --ntasks=2 caffe train solver.prototxt\n")
    assert said.count("Optimization Done.") == 1 and "2 ranks, started by srun: gradients over MPI" in said, said
    assert trained(folder) == expected


def test_srun_without_mpi_needs_a_store(folder, expected):
    step = "srun --mpi=none --nodes=2 --ntasks=2 caffe train solver.prototxt"
    said = in_slurm(folder, f"""{step} && exit 1
        CAFFE_SECRET=a; export CAFFE_SECRET; {step} --store "$(scontrol show hostnames node[1-2] | head -n 1):29500"\n""")
    assert "srun has started this process, but not in a way that this MPI (" in said and "give all of them --store" in said, said
    assert said.count("Optimization Done.") == 1 and "2 ranks, started by srun: gradients over TCP" in said, said
    assert trained(folder) == expected


JOB = """
wait_for() { i=0; until eval "$1"; do i=$((i + 1)); [ $i -lt 400 ] || { echo "no: $1"; cat caffe-1.log; exit 1; }; sleep 0.3; done; }
export DATABASE=shared SCRATCH="$PWD/scratch"
sbatch --cpus-per-task=1 --mem=500 %s
wait_for '[ "$(wc -l < runs/1-0/metrics.jsonl)" -gt 2 ]' 2>/dev/null
ls scratch/shared
scancel --signal=TERM 1
wait_for 'squeue --noheader | grep -q " PD "'
scontrol update JobId=1 StartTime=now
wait_for '[ -z "$(squeue --noheader)" ]'
"""


def ending(run):
    return json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])


def test_a_slurm_job_stops_is_queued_again_and_goes_on(folder, solver):
    solver("solver", max_iter=6000, display=5, snapshot_prefix='"run"')
    (folder / "db").rename(folder / "shared")  # so that only the copy can be read
    said = in_slurm(folder, JOB % (RECIPES / "slurm" / "train.sbatch"))
    log = (folder / "caffe-1.log").read_text()
    assert "data.mdb" in said
    first, second = ending(folder / "runs" / "1-0"), ending(folder / "runs" / "1-1")
    assert first["reason"] == "stopped" and 0 < first["iteration"] < 6000, log
    assert f"Restoring previous solver status from run_iter_{first['iteration']}.solverstate" in log
    assert second["reason"] == "finished" and second["iteration"] == 6000, log
    assert not (folder / "scratch").exists()


# Two ranks with Slurm's variables; a step of one command for each machine runs once.
SRUN = """#!/bin/sh
train= ranks=
for word; do
  case "$word" in --*) shift ;; caffe) train=1; break ;; *) break ;; esac
done
[ -n "$train" ] || exec "$@"
export SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=1 SLURM_STEP_ID=2 SLURM_STEP_NODELIST=localhost
SLURM_PROCID=1 "$@" & SLURM_PROCID=0 "$@"
wait
"""


def test_the_slurm_job_without_slurm(folder):
    (folder / "bin").mkdir()
    (folder / "db").rename(folder / "shared")
    for name, text in (("srun", SRUN), ("scontrol", '#!/bin/sh\ncase "$1" in show) echo 127.0.0.1;; *) touch requeued;; esac\n')):
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    own = variables(SLURM_JOB_ID="7", SLURM_CPUS_PER_TASK="1", SLURM_JOB_NUM_NODES="1", DATABASE="shared",
                    SLURM_JOB_NODELIST="here", MPI="none", PORT=str(free_port()),
                    SCRATCH=str(folder / "scratch"))
    own["PATH"] = f"{folder / 'bin'}:{own['PATH']}"
    [(status, said)] = finish(start(folder, [["bash", RECIPES / "slurm" / "train.sbatch"]], **own))
    assert status == 0 and said.count("Optimization Done.") == 1, said
    assert not (folder / "scratch").exists()
    assert ending(folder / "runs" / f"{own['SLURM_JOB_ID']}-0")["reason"] == "finished"
    assert not (folder / "requeued").exists()


# Grid Engine.

# The job's timer ends when training has begun, as if the time were over.
SGE_JOB = """
wait_for() { i=0; until eval "$1"; do i=$((i + 1)); [ $i -lt 400 ] || { echo "no: $1"; qstat -f; cat caffe-*.log; exit 1; }; sleep 0.3; done; }
export DATABASE=shared SCRATCH=/mnt/caffe
qsub -pe mpi 2 %s
wait_for '[ "$(wc -l < runs/1-0/metrics.jsonl)" -gt 2 ]' 2>/dev/null
pkill -f '^sleep 14220$'
wait_for '[ -e runs/2-0 ]'
wait_for '[ -z "$(qstat)" ]'
"""


def weights(file):
    """A snapshot without the name of the database, which is another one for a copy."""
    net = caffe_pb2.NetParameter.FromString(file.read_bytes())
    for layer in net.layer:
        layer.ClearField("data_param")
    return net.SerializeToString(deterministic=True)


def test_a_grid_engine_job_stops_is_submitted_again_and_goes_on(folder, solver, run):
    root = os.environ.get("CAFFE_SGE_ROOT", "")
    if not os.path.exists(f"{root}/usr/lib/gridengine/sge_qmaster"):
        pytest.skip("Grid Engine is not installed, and CAFFE_SGE_ROOT does not name its unpacked packages")
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    mpirun(2)
    path = solver("solver", max_iter=6000, display=5, snapshot_prefix='"run"')
    done = run(BINARIES / "caffe", "train", f"-solver={path}", "-workers=2", f"--set=snapshot_prefix={folder}/workers",
               env=environment(folder, OMP_NUM_THREADS="2"))
    assert done.returncode == 0, done.stderr
    (folder / "db").rename(folder / "shared")  # so that only the copies can be read
    (folder / "steps.sh").write_text("set -eu\n" + SGE_JOB % (RECIPES / "sge" / "train.sge"))
    done = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child",
                           ROOT / "tests" / "smoke" / "sge_cluster.sh", folder / "sge", "sh", "steps.sh"],
                          cwd=folder, text=True, check=False, timeout=600, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=environment(folder, **variables()))
    assert done.returncode == 0, done.stdout[-4000:]
    first, second = ending(folder / "runs" / "1-0"), ending(folder / "runs" / "2-0")
    assert first["reason"] == "stopped" and 0 < first["iteration"] < 6000
    assert second["reason"] == "finished" and second["iteration"] == 6000
    assert f"Restoring previous solver status from run_iter_{first['iteration']}.solverstate" in (folder / "caffe-2.log").read_text()
    assert weights(folder / "run_iter_6000.caffemodel") == weights(folder / "workers_iter_6000.caffemodel")
    assert not list((folder / "sge").glob("disk*/caffe"))


# Kubernetes.

def fields(document, path):
    for name in path.split("."):
        document = document[int(name) if name.isdigit() else name]
    return document


def test_the_train_job(folder, expected):
    runtime, job = yaml.safe_load_all((RECIPES / "kubernetes" / "trainjob.yaml").read_text())
    assert (runtime["apiVersion"], runtime["kind"]) == ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime")
    assert (job["apiVersion"], job["kind"]) == ("trainer.kubeflow.org/v1alpha1", "TrainJob")
    assert job["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"]
    assert job["spec"]["runtimeRef"]["kind"] == runtime["kind"]
    assert job["spec"]["trainer"]["numNodes"] == runtime["spec"]["mlPolicy"]["numNodes"] == 2
    assert runtime["spec"]["mlPolicy"]["torch"] == {}  # sets PET_*; Trainer 2.2 has removed numProcPerNode
    node = fields(runtime, "spec.template.spec.replicatedJobs.0")
    assert node["name"] == "node"  # required by the policy "torch"
    assert fields(node, "template.metadata.labels")["trainer.kubeflow.org/trainjob-ancestor-step"] == "trainer"
    pod = fields(node, "template.spec.template.spec")
    check_pod(pod, "node")
    commands = []
    for rank in (0, 1):
        # The variables that Kubeflow Trainer sets, on one machine.
        pet = {"PET_NNODES": "2", "PET_NODE_RANK": str(rank), "PET_MASTER_ADDR": "localhost", "PET_MASTER_PORT": "%PORT%"}
        commands.append([re.sub(r"\$\((\w+)\)", lambda found, pet=pet: pet[found[1]], word)
                         for word in job["spec"]["trainer"]["command"]])
    run_as_ranks(folder, commands)
    assert trained(folder) == expected


def check_pod(pod, container):
    [one] = pod["containers"]
    assert one["name"] == container and one["image"]
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    assert {mount["name"] for mount in one.get("volumeMounts", [])} == volumes
    assert pod["terminationGracePeriodSeconds"] >= 60
    return one


def run_as_ranks(folder, commands):
    port = str(free_port())
    commands = [[word.replace("%PORT%", port) for word in command] for command in commands]
    for status, said in finish(start(folder, commands, **variables())):
        assert status == 0, said


def test_the_mpi_job(folder):
    mpirun(2)
    job = yaml.safe_load((RECIPES / "kubernetes" / "mpijob.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
    replicas = job["spec"]["mpiReplicaSpecs"]
    assert set(replicas) == {"Launcher", "Worker"} and replicas["Launcher"]["replicas"] == 1
    assert job["spec"]["mpiImplementation"] == "OpenMPI"
    launcher = check_pod(fields(replicas, "Launcher.template.spec"), "launcher")
    worker = check_pod(fields(replicas, "Worker.template.spec"), "worker")
    assert launcher["image"] == worker["image"]
    ranks = replicas["Worker"]["replicas"] * job["spec"]["slotsPerWorker"]
    script = launcher["command"][-1]
    assert f"-np {ranks} " in script
    # The operator's host file has one line for each worker; this machine acts as the first one.
    (folder / "hostfile").write_text("localhost slots=4\n")
    for old, new in (("/etc/mpi/hostfile", str(folder / "hostfile")), ("/training", str(folder))):
        assert old in script
        script = script.replace(old, new)
    said = run_recipe(folder, [*launcher["command"][:-1], script])
    assert said.count("Optimization Done.") == 1


def test_the_image_of_the_mpi_job():
    text = (RECIPES / "kubernetes" / "mpi.Dockerfile").read_text()
    job = yaml.safe_load((RECIPES / "kubernetes" / "mpijob.yaml").read_text())
    worker = fields(job, "spec.mpiReplicaSpecs.Worker.template.spec.containers.0")
    assert worker["command"][0] == "/usr/sbin/sshd" and "openssh-server" in text
    assert worker["command"][-1] in text  # the server's settings
    assert f"HostKey {job['spec']['sshAuthMountPath']}/id_rsa" in text
    assert re.findall(r"^USER (\S+)", text, re.MULTILINE)[-1] == "1000"


# Compose.

def compose():
    text = (RECIPES / "compose" / "compose.yaml").read_text()
    given = {"CAFFE_SECRET": SECRET, "THREADS": "1"}
    text = re.sub(r"\$\{(\w+)(?::[-?]([^}]*))?\}", lambda found: given.get(found[1], found[2]), text)
    return yaml.safe_load(text)


def test_the_services_of_compose():
    services = compose()["services"]
    assert list(services) == ["machine0", "machine1"]
    for rank, (name, service) in enumerate(services.items()):
        known = {"build", "image", "working_dir", "volumes", "environment", "stop_grace_period", "restart", "hostname", "command",
                 "depends_on"}  # in the Compose Specification
        assert set(service) <= known
        assert service["hostname"] == name and service["environment"]["CAFFE_SECRET"] == SECRET
        assert f"-rank {rank} " in service["command"] and f"-ranks {len(services)} " in service["command"]
        assert "-store machine0:" in service["command"]
        context = (RECIPES / "compose" / service["build"]["context"]).resolve()
        assert context == ROOT and (context / service["build"]["dockerfile"]).exists()


def test_the_commands_of_compose_train_together(folder, expected, machines):
    commands = [machines(number, name, "env", *(f"{key}={value}" for key, value in service["environment"].items()),
                         *shlex.split(service["command"]))
                for number, (name, service) in enumerate(compose()["services"].items(), 1)]
    for status, said in finish(start(folder, commands, **variables())):
        assert status == 0, said
    assert trained(folder) == expected


# ImageNet in large batches.

def test_large_batches(workplace):
    folder = workplace.root / "examples" / "imagenet"
    for name in ("ilsvrc12_train_lmdb", "ilsvrc12_val_lmdb"):
        write_images(folder / name)
    path = "examples/clusters/imagenet_large_batch/solver.prototxt"
    assert "Peak memory:" in workplace.run("caffe", "plan", f"--solver={path}")
    solver = text_format.Parse((workplace.root / path).read_text(), caffe_pb2.SolverParameter())
    batch = 64 * 32
    assert solver.base_lr == pytest.approx(0.1 * batch / 256)
    assert solver.rampup_interval == round(5 * 1281167 / batch)
    assert solver.max_iter == pytest.approx(90 * 1281167 / batch, rel=1e-3)
    store = f"127.0.0.1:{free_port()}"
    commands = [[BINARIES / "caffe", "train", path, "-ranks=2", f"-rank={rank}", f"-store={store}", "--set=max_iter=1",
                 "--set=display=1", "--set=snapshot_after_train=false", "--set=layer[0].data_param.batch_size=2"]
                for rank in (0, 1)]
    results = finish(start(workplace.root, commands))
    assert [status for status, _ in results] == [0, 0], results
    assert "batch_size is that of each" in results[0][1], results[0][1]


def write_images(path):
    import lmdb  # pylint: disable=import-outside-toplevel
    path.parent.mkdir(parents=True, exist_ok=True)
    with lmdb.open(str(path), map_size=1 << 26) as database, database.begin(write=True) as transaction:
        for number in range(4):
            pixels = bytes((i * (number + 3)) & 255 for i in range(3 * 256 * 256))
            record = caffe_pb2.Datum(channels=3, height=256, width=256, data=pixels, label=number)
            transaction.put(b"%08d" % number, record.SerializeToString())
