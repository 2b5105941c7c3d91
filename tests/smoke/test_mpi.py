"""Ranks that mpirun or srun has started use MPI, and failures are noticed as with TCP."""
import re
import shutil
import subprocess

import pytest

from programs import BINARIES
from ranks import environment, finish, free_port, mpirun, start, start_ranks

MODULE = BINARIES.parent / "lib" / "libcaffe_openmpi.so"
pytestmark = pytest.mark.skipif(not MODULE.exists(), reason="a build without Open MPI (libopenmpi-dev)")


def bytes_of(folder, name, iteration):
    return (folder / f"{name}_iter_{iteration}.caffemodel").read_bytes()


@pytest.mark.parametrize("ranks", (2, 4))
def test_the_bytes_are_those_of_workers(tmp_path, program, run, solver, ranks):
    caffe = program("caffe")
    results = {}
    options = {"whole": [], "rounded": ["--set=net_param.reduce_type=BFLOAT16"],
               "split": ["--set=layer[ip].parallel=SPLIT_OUTPUT"]}
    for name, wire in options.items():
        path = solver(name, max_iter=20)
        done = run(caffe, "train", f"-solver={path}", f"-workers={ranks}", *wire,
                   env=environment(tmp_path, OMP_NUM_THREADS=str(ranks)))
        assert done.returncode == 0, done.stderr
        expected = bytes_of(tmp_path, name, 20)
        (tmp_path / f"{name}_iter_20.caffemodel").unlink()
        command = mpirun(ranks, caffe, "train", f"-solver={path}", *wire)
        [(status, said)] = finish(start(tmp_path, [command]))
        assert status == 0 and said.count("Optimization Done.") == 1, said
        assert len(re.findall(rf"{ranks} ranks, started by mpirun: gradients over MPI \(Open MPI v[0-9.]+\)", said)) == 1, said
        results[name] = bytes_of(tmp_path, name, 20)
        assert results[name] == expected
    assert results["whole"] != results["rounded"]


def test_an_error_of_one_rank_is_that_of_all(tmp_path, program, solver):
    path = solver("run", max_iter=20)
    script = f'test "$OMPI_COMM_WORLD_RANK" = 1 && more=-set=base_lr=0.5; exec {program("caffe")} train -solver={path} ' \
             '-transport=mpi $more'
    [(status, said)] = finish(start(tmp_path, [mpirun(2, "sh", "-c", script)]))
    assert status != 0 and "rank 1 differs from rank 0 in the solver" in said, said


def test_mpich_starts_ranks_too(tmp_path, program, run, solver):
    if shutil.which("mpirun.mpich") is None or not MODULE.with_name("libcaffe_mpich.so").exists():
        pytest.skip("MPICH is not installed (mpich, libmpich-dev)")
    path = solver("run", max_iter=20)
    done = run(program("caffe"), "train", f"-solver={path}", "-workers=2", env=environment(tmp_path, OMP_NUM_THREADS="2"))
    assert done.returncode == 0, done.stderr
    expected = bytes_of(tmp_path, "run", 20)
    (tmp_path / "run_iter_20.caffemodel").unlink()
    [(status, said)] = finish(start(tmp_path, [["mpirun.mpich", "-np", "2", program("caffe"), "train", f"-solver={path}"]]))
    assert status == 0 and "2 ranks, started by mpirun: gradients over MPI (MPICH Version: " in said, said
    assert bytes_of(tmp_path, "run", 20) == expected


def test_a_store_means_tcp(tmp_path, program, solver):
    path = solver("run", max_iter=20)
    store = f"127.0.0.1:{free_port()}"
    [(status, said)] = finish(start(tmp_path, [mpirun(2, program("caffe"), "train", f"-solver={path}", f"-store={store}")]))
    assert status == 0 and f"2 ranks, started by mpirun: gradients over TCP (rank 0 at {store})" in said, said


def test_ranks_that_mpi_does_not_know_are_asked_for_a_store(tmp_path, program, solver):
    """The variables of srun --mpi=none."""
    path = solver("run", max_iter=20)
    slurm = {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "1", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}
    [(status, said)] = finish(start(tmp_path, [[program("caffe"), "train", f"-solver={path}"]], **slurm))
    assert status == 1 and "the ranks that srun has started cannot find each other by MPI: srun has started this process" in said, said
    assert "give all of them --store HOST:PORT" in said, said


def test_mpi_needs_to_have_started_the_ranks(tmp_path, program, solver):
    path = solver("run", max_iter=20)
    for status, said in finish(start_ranks(tmp_path, program("caffe"), path, 2, "-transport=mpi")):
        assert status != 0 and "no mpirun of this MPI (Open MPI v" in said, said


def test_srun_that_tells_mpi_nothing_is_named(tmp_path, program, solver):
    """srun --mpi=none and --mpi=pmi2 start a rank like this: MPI would end it inside MPI_Init."""
    path = solver("run", max_iter=20)
    slurm = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "7"}
    for status, said in finish(start_ranks(tmp_path, program("caffe"), path, 2, "-transport=mpi", **slurm)):
        assert status != 0 and "srun has started this process, but not in a way that this MPI (" in said, said
        assert "OMPI_MCA_pmix=s1" in said and "MPI_Init" not in said, said


def test_a_pmi_of_slurms_that_the_user_names_is_left_to_mpi(tmp_path, program, solver):
    """This MPI was built without it, and reports this with its own message."""
    path = solver("run", max_iter=20)
    slurm = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "7", "OMPI_MCA_pmix": "s1"}
    for status, said in finish(start_ranks(tmp_path, program("caffe"), path, 2, "-transport=mpi", **slurm)):
        assert status != 0 and "srun has started this process" not in said, said


def test_wrong_options_are_explained(tmp_path, program, solver):
    path = solver("run", max_iter=20)
    caffe = program("caffe")
    for status, said in finish(start_ranks(tmp_path, caffe, path, 2, "-transport=udp")):
        assert status != 0 and "transport is 'udp'; use auto, tcp or mpi" in said, said


def test_a_transport_without_ranks_is_refused(program, solver):
    for transport, why in (("mpi", "no launcher has started several ranks"), ("udp", "use auto, tcp or mpi")):
        done = subprocess.run([program("caffe"), "train", solver("run", max_iter=20), f"-transport={transport}"],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert done.returncode == 1 and why in done.stdout, done.stdout


def test_the_program_does_not_need_mpi(program):
    linked = subprocess.run(["ldd", program("caffe")], text=True, stdout=subprocess.PIPE).stdout
    assert "libcaffe" in linked and "libmpi" not in linked
