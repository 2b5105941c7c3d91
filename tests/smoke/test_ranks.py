"""Several processes of `caffe train` train one net: docs/clusters.md."""
import re
import socket
import subprocess

import pytest

from ranks import (  # pylint: disable=unused-import
    KINDS, bytes_of, environment, finish, free_port, hosts_in_namespaces, mpirun, start, start_on_hosts, start_ranks)
from test_workers import weights


def test_nobody_else_is_given_the_port_of_ranks():
    port = free_port()
    with socket.socket() as other, pytest.raises(OSError, match="Address already in use"):
        other.bind(("127.0.0.1", port))


@pytest.mark.parametrize("kind", KINDS)
def test_processes_have_the_bytes_of_threads(kind, tmp_path, program, run, solver):
    caffe = program("caffe")
    for count in (2, 4) if kind == "sgd" else (2,):
        path = solver("threads", max_iter=20, **KINDS[kind])
        done = run(caffe, "train", f"-solver={path}", f"-workers={count}",
                   env=environment(tmp_path, OMP_NUM_THREADS=str(count)))
        assert done.returncode == 0, done.stderr
        expected = bytes_of(tmp_path, "threads", 20)
        path = solver("ranks", max_iter=20, **KINDS[kind])
        for status, said in finish(start_ranks(tmp_path, caffe, path, count)):
            assert status == 0, said
        assert bytes_of(tmp_path, "ranks", 20)["caffemodel"] == expected["caffemodel"]


@pytest.mark.parametrize("wire", ["FLOAT16", "BFLOAT16"])
def test_gradients_travel_in_16_bits_alike(wire, tmp_path, program, run, solver):
    caffe, option = program("caffe"), f"--set=net_param.reduce_type={wire}"
    done = run(caffe, "train", f"-solver={solver('threads', max_iter=20)}", "-workers=3", option, env=environment(tmp_path))
    assert done.returncode == 0, done.stderr
    for name, options in {"whole": [], "rounded": [option]}.items():
        for status, said in finish(start_ranks(tmp_path, caffe, solver(name, max_iter=20), 3, *options)):
            assert status == 0, said
    rounded = weights(tmp_path / "rounded_iter_20.caffemodel")
    assert bytes_of(tmp_path, "rounded", 20)["caffemodel"] == bytes_of(tmp_path, "threads", 20)["caffemodel"]
    whole = weights(tmp_path / "whole_iter_20.caffemodel")
    assert rounded != whole
    assert rounded == pytest.approx(whole, abs=0.01)


@pytest.mark.parametrize("kind", ["adam", "larc"])
def test_split_layers_train_alike(kind, tmp_path, program, run, solver):
    """Three processes whose parts of 10 outputs differ in size, with a snapshot during training; then one process continues alone."""
    caffe, split = program("caffe"), "--set=layer[ip].parallel=SPLIT_OUTPUT"
    settings = {"max_iter": 20, "snapshot": 10, "precision": "FP64", **KINDS[kind]}
    done = run(caffe, "train", f"-solver={solver('threads', **settings)}", "-workers=3", split, env=environment(tmp_path))
    assert done.returncode == 0, done.stderr
    for name, options in {"whole": [], "split": [split]}.items():
        for status, said in finish(start_ranks(tmp_path, caffe, solver(name, **settings), 3, *options)):
            assert status == 0, said
    for iteration in (10, 20):
        whole, parts = bytes_of(tmp_path, "whole", iteration), bytes_of(tmp_path, "split", iteration)
        assert parts["caffemodel"] == bytes_of(tmp_path, "threads", iteration)["caffemodel"]
        assert weights(tmp_path / f"split_iter_{iteration}.caffemodel") == \
            pytest.approx(weights(tmp_path / f"whole_iter_{iteration}.caffemodel"), abs=1e-9)
        assert len(parts["solverstate"]) == len(whole["solverstate"])
    done = run(caffe, "train", f"-solver={solver('split', **{**settings, 'max_iter': 25})}",
               f"-snapshot={tmp_path}/split_iter_20.solverstate", split, env=environment(tmp_path))
    assert done.returncode == 0, done.stderr


def test_histograms_of_parts_are_refused(tmp_path, program, solver):
    ended = finish(start_ranks(tmp_path, program("caffe"), solver("run", max_iter=5), 2, "-set=layer[ip].parallel=SPLIT_OUTPUT",
                               "-run_dir=run", "-histograms=2"))
    assert [status for status, _ in ended] == [1, 1], ended
    for _, said in ended:
        assert "--histograms shows whole parameters" in said


def test_layers_are_split_by_cost(tmp_path, program, solver):
    """The small net's layer is not split unless its batches are small; all ranks choose alike, and report it once."""
    ended = finish(start_ranks(tmp_path, program("caffe"), solver("run", max_iter=5), 2, "-parallel=auto"))
    assert [status for status, _ in ended] == [0, 0], ended
    assert "Layers that 2 ranks can split" in ended[0][1] and "  ip: gradients" in ended[0][1]
    assert "can split" not in ended[1][1]


def test_a_type_that_gradients_cannot_have_is_refused(tmp_path, program, run, solver):
    done = run(program("caffe"), "train", f"-solver={solver('one', max_iter=20)}", "--set=net_param.reduce_type=INT",
               env=environment(tmp_path))
    assert done.returncode == 1
    assert "reduce_type is INT" in done.stderr and "BFLOAT16" in done.stderr


def test_rank_0_alone_speaks_and_writes(tmp_path, program, solver):
    path = solver("run", max_iter=20, display=5, snapshot=10)
    results = finish(start_ranks(tmp_path, program("caffe"), path, 3, "-trace=trace.json"))
    assert [status for status, _ in results] == [0, 0, 0], results
    assert "Iteration 15" in results[0][1] and "Optimization Done." in results[0][1]
    assert results[1][1] == results[2][1] == ""
    assert sorted(file.name for file in tmp_path.glob("trace*")) == ["trace.json", "trace.rank1.json", "trace.rank2.json"]
    assert sorted(file.name for file in tmp_path.glob("run_iter*")) == [
        f"run_iter_{i}.{suffix}" for i in (10, 20) for suffix in ("caffemodel", "solverstate")]


def test_resumes_with_other_numbers_of_ranks(tmp_path, program, solver):
    """4, 2 and 3 ranks one after the other give the same as one worker with the joined batch, if no data is drawn at random."""
    caffe = program("caffe")
    net = (tmp_path / "net.prototxt").read_text()
    net = re.sub(r'layer \{ name: "drop".*\n', "", net).replace("mirror: true crop_size: 10", "crop_size: 12")
    net = net.replace("batch_size: 16", "batch_size: 12")  # over all ranks, as in NVCaffe
    (tmp_path / "plain.prototxt").write_text(net)
    plain = {"net": f'"{tmp_path}/plain.prototxt"', "precision": "FP64"}

    def train(name, iterations, ranks, resumed=None):
        path = solver(name, max_iter=iterations, **plain)
        more = [f"-snapshot={tmp_path}/{resumed}.solverstate"] if resumed else []
        for status, said in finish(start_ranks(tmp_path, caffe, path, ranks, *more)):
            assert status == 0, said

    train("a", 10, 4)
    train("b", 20, 2, "a_iter_10")
    train("c", 30, 3, "b_iter_20")
    path = solver("one", max_iter=30, **plain)
    done = subprocess.run([caffe, "train", f"-solver={path}"], env=environment(tmp_path), capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    one, many = weights(tmp_path / "one_iter_30.caffemodel"), weights(tmp_path / "c_iter_30.caffemodel")
    assert max(abs(a - b) for a, b in zip(one, many)) <= 1e-12 * max(map(abs, one))


def start_apart(tmp_path, caffe, make):
    """Starts two ranks, each in its own folder, which `make` fills. Returns their results."""
    processes = []
    store = f"127.0.0.1:{free_port()}"
    for rank in (0, 1):
        folder = tmp_path / f"rank{rank}"
        folder.mkdir()
        make(folder, rank)
        processes += start(folder, [[caffe, "train", "-solver=solver.prototxt", "-ranks=2", f"-rank={rank}", f"-store={store}"]], CAFFE_SECRET="x")
    return finish(processes)


@pytest.mark.parametrize("differs", ["nothing", "database", "mean"])
def test_ranks_with_other_data_are_named(differs, tmp_path, program, run):
    """Files of the same name, such as copies on the disks of several machines, may have different contents."""
    def make(folder, rank):
        other = rank == 1
        count = 7 if other and differs == "database" else 8
        (folder / "list").write_text("".join(f"{i}.pgm {i % 2}\n" for i in range(count)))
        for i in range(count):
            (folder / f"{i}.pgm").write_bytes(b"P5 2 2 255\n" + bytes([i, 2, 3, 4]))
        assert run(program("convert_imageset"), "--gray", f"{folder}/", folder / "list", folder / "db").returncode == 0
        mean = folder / "mean.binaryproto"
        assert run(program("compute_image_mean"), folder / "db", mean).returncode == 0
        if other and differs == "database":
            mean.write_bytes((tmp_path / "rank0" / mean.name).read_bytes())
        if other and differs == "mean":
            mean.write_bytes(mean.read_bytes()[:-4] + b"\0\0\0\0")
        (folder / "net.prototxt").write_text("""
layer { name: "d" type: "Data" top: "x" top: "t" transform_param { mean_file: "mean.binaryproto" }
  data_param { source: "db" batch_size: 2 backend: LMDB } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 2 } }
layer { name: "l" type: "SoftmaxWithLoss" bottom: "y" bottom: "t" top: "l" }
""")
        (folder / "solver.prototxt").write_text(
            'net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 2 random_seed: 3 snapshot_after_train: false')
    said = {"database": "layer 'd': 7 records", "mean": "mean_file 'mean.binaryproto' has"}
    for status, text in start_apart(tmp_path, program("caffe"), make):
        if differs in said:
            assert status == 1 and "rank 1 differs from rank 0 in what the files hold" in text and said[differs] in text, text
        else:
            assert status == 0, text
        assert "mean {" not in text, "the log has a line for each pixel of the mean"


def test_the_log_tells_what_reductions_cost(tmp_path, program, run, solver):
    """The cost is logged for ranks and for workers, every 100 iterations."""
    caffe = program("caffe")
    path = solver("run", max_iter=250)
    ranks = finish(start_ranks(tmp_path, caffe, path, 2))[0][1]
    workers = run(caffe, "train", f"-solver={path}", "-workers=2").stderr
    alone = run(caffe, "train", f"-solver={path}").stderr
    for said, lines in ((ranks, 2), (workers, 2), (alone, 0)):
        shares = re.findall(r"Iterations \d+ to \d+: ([\d.]+)% of [\d.]+ ms waited for the reduction of gradients", said)
        assert len(shares) == lines and all(0 <= float(share) <= 100 for share in shares), said


def test_one_run_folder_is_written(tmp_path, program, solver):
    path = solver("run", max_iter=20)
    results = finish(start_ranks(tmp_path, program("caffe"), path, 2, "-run_dir=runs/a"))
    assert [status for status, _ in results] == [0, 0], results
    assert (tmp_path / "runs" / "a" / "metrics.jsonl").read_text().count('"finished"') == 1


def test_under_mpirun(tmp_path, program, run, solver):
    caffe = program("caffe")
    path = solver("run", max_iter=20)
    done = run(caffe, "train", f"-solver={path}", "-workers=2", env=environment(tmp_path, OMP_NUM_THREADS="2"))
    assert done.returncode == 0, done.stderr
    expected = bytes_of(tmp_path, "run", 20)
    for file in tmp_path.glob("run_iter*"):
        file.unlink()
    [(status, said)] = finish(start(tmp_path, [mpirun(2, caffe, "train", f"-solver={path}")]))
    assert status == 0 and said.count("Optimization Done.") == 1, said
    assert bytes_of(tmp_path, "run", 20) == expected


def test_under_torchrun_and_srun(tmp_path, program, solver):
    """The launchers are recognised by the variables that they set."""
    caffe = program("caffe")
    path = solver("run", max_iter=20)
    port = str(free_port())
    torchrun = [{"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2",
                 "MASTER_ADDR": "localhost", "MASTER_PORT": port} for rank in (0, 1)]
    srun = [{"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "1", "SLURM_JOB_ID": port,
             "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "localhost"} for rank in (0, 1)]
    results = {}
    for name, variables, store in (("torchrun", torchrun, []), ("srun", srun, [f"-store=127.0.0.1:{port}"])):
        processes = [start(tmp_path, [[caffe, "train", f"-solver={path}", *store]], **one)[0] for one in variables]
        for status, said in finish(processes):
            assert status == 0, (name, said)
        results[name] = bytes_of(tmp_path, "run", 20)
    assert results["torchrun"] == results["srun"]


def test_ranks_that_disagree_end_with_the_difference(tmp_path, program, solver):
    paths = [solver("zero", max_iter=20), solver("one", max_iter=20, base_lr=0.02)]
    caffe, store = program("caffe"), f"127.0.0.1:{free_port()}"
    processes = start(tmp_path, [[caffe, "train", f"-solver={path}", "-ranks=2", f"-rank={rank}", f"-store={store}"]
                                 for rank, path in enumerate(paths)])
    for status, said in finish(processes):
        assert status == 1
        assert re.search(r"rank 1 differs from rank 0 in the solver: line \d+ is 'base_lr: 0.02', that of rank 0 "
                         r"'base_lr: 0.01'", said), said
    assert not list(tmp_path.glob("*_iter_*"))


@pytest.mark.parametrize("rank", [0, 1])
def test_a_snapshot_of_another_rank_is_named(rank, tmp_path, program, run, solver):
    caffe, path = program("caffe"), solver("run", max_iter=20, snapshot=10)
    assert run(caffe, "train", f"-solver={path}").returncode == 0
    wanted = [f"-snapshot={tmp_path}/run_iter_20.solverstate", f"-snapshot={tmp_path}/run_iter_10.solverstate"]
    processes = start_ranks(tmp_path, caffe, solver("more", max_iter=30), 2,
                            each=lambda one: wanted[one:one + 1] if rank == 0 else wanted[1:] if one == 1 else [])
    of_root = f"{tmp_path}/run_iter_20.solverstate" if rank == 0 else "none"
    for status, said in finish(processes):
        assert status == 1, said
        assert f"this rank was given snapshot {tmp_path}/run_iter_10.solverstate, rank 0 {of_root}; give all" in said, said


def test_a_file_that_one_rank_lacks_ends_all(tmp_path, program, solver):
    caffe, store = program("caffe"), f"127.0.0.1:{free_port()}"
    paths = [solver("run", max_iter=20), tmp_path / "missing.prototxt"]
    paths[1].write_text(paths[0].read_text().replace("net.prototxt", "no_net.prototxt"))
    processes = start(tmp_path, [[caffe, "train", f"-solver={path}", "-ranks=2", f"-rank={rank}", f"-store={store}"]
                                 for rank, path in enumerate(paths)])
    for status, said in finish(processes):
        assert status == 1 and "no_net.prototxt" in said, said


def test_weights_of_rank_0_are_taken(tmp_path, program, solver):
    caffe = program("caffe")
    for name, seed in (("a", 1), ("b", 2)):
        [(status, said)] = finish(start(tmp_path, [[caffe, "train", f"-solver={solver(name, max_iter=1, random_seed=seed)}"]]))
        assert status == 0, said
    path = solver("run", max_iter=5)
    results = {}
    for name, files in (("alike", "aa"), ("unlike", "ab")):
        copies = [tmp_path / f"{name}{rank}" for rank in (0, 1)]
        for copy, file in zip(copies, files):  # each rank has its own folder, as on separate machines
            copy.mkdir()
            (copy / "start.caffemodel").write_bytes((tmp_path / f"{file}_iter_1.caffemodel").read_bytes())
        store = f"127.0.0.1:{free_port()}"
        processes = [start(tmp_path, [["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", copy, caffe, "train",
                                       f"-solver={path}", "-weights=start.caffemodel", "-ranks=2", f"-rank={rank}",
                                       f"-store={store}"]])[0] for rank, copy in enumerate(copies)]
        (_, _), (status, said) = finish(processes)
        assert status == 0, said
        assert ("the weights of rank 1 were not those of rank 0, which are taken" in said) == (name == "unlike")
        results[name] = (tmp_path / "run_iter_5.caffemodel").read_bytes()
    assert results["alike"] == results["unlike"]


@pytest.mark.parametrize("arguments, text", [
    (["-ranks=2", "-store=localhost:1"], "--rank is missing"),
    (["-ranks=2", "-rank=0"], "--store is missing"),
    (["-rank=0"], "--rank is given, but not --ranks"),
    (["-store=localhost:1"], "neither --ranks nor a launcher"),
    (["-ranks=0"], "-ranks is 0"),
    (["-ranks=2", "-rank=2", "-store=localhost:1"], "there is no rank 2 of 2"),
    (["-ranks=2", "-rank=0", "-store=localhost"], "'localhost' is not an address"),
    (["-ranks=2", "-rank=0", "-store=localhost:0"], "need to know its port"),
    (["-ranks=2", "-rank=0", "-store=localhost:1", "-workers=2"], "-workers is 2, but several processes"),
    (["-ranks=2", "-rank=1", "-store=localhost:1", "-join_seconds=1"], "nobody answers within 1 s"),
    (["-ranks=2", "-rank=1", "-store=no-host.invalid:1", "-join_seconds=1"], "host 'no-host.invalid' has no address"),
    (["-ranks=2", "-rank=1", "-store=localhost:1", "-join_seconds=nan"], "join_seconds is nan"),
    (["-ranks=2", "-rank=1", "-store=localhost:1", "-join_seconds=-5"], "join_seconds is -5"),
])
def test_what_cannot_be_is_refused(arguments, text, tmp_path, program, solver):
    command = [program("caffe"), "train", f"-solver={solver('run', max_iter=5)}", *arguments]
    [(status, said)] = finish(start(tmp_path, [command]))
    assert status == 1 and text in said, said
    assert not list(tmp_path.glob("run_iter*"))


def test_several_that_would_train_each_alone_are_refused(tmp_path, program, solver):
    command = [program("caffe"), "train", f"-solver={solver('run', max_iter=5)}"]
    alone = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "1",
             "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "4"}
    [(status, said)] = finish(start(tmp_path, [command], **alone))
    assert status == 1 and "torchrun has started this process alone, but srun 4 of them" in said, said
    [(status, said)] = finish(start(tmp_path, [[*command, "-ranks=1"]], **alone))
    assert status == 0, said


def test_another_secret_is_refused(tmp_path, program, solver):
    store = f"127.0.0.1:{free_port()}"
    command = [program("caffe"), "train", f"-solver={solver('run', max_iter=5)}", "-ranks=2", f"-store={store}", "-join_seconds=600"]
    # Rank 0 keeps waiting for a rank that knows its secret; it is killed after the test.
    [_], [other] = (start(tmp_path, [[*command, f"-rank={rank}"]], CAFFE_SECRET=f"secret {rank}") for rank in (0, 1))
    [(status, said)] = finish([other])
    assert status == 1 and "its secret is another one" in said, said


def test_machines_have_the_bytes_of_threads(hosts, tmp_path, program, run, solver):
    caffe = program("caffe")
    path = solver("run", max_iter=20)
    done = run(caffe, "train", f"-solver={path}", "-workers=3", env=environment(tmp_path, OMP_NUM_THREADS="3"))
    assert done.returncode == 0, done.stderr
    expected = bytes_of(tmp_path, "run", 20)
    for status, said in finish(start_on_hosts(hosts, tmp_path, caffe, path)):
        assert status == 0, said
    assert bytes_of(tmp_path, "run", 20) == expected


def test_ranks_beside_rank_0_may_come_by_its_loopback_address(hosts, tmp_path, program, solver):
    """On some hosts the own name means 127.0.1.1; ranks on other machines cannot use that address."""
    names, _ = hosts
    path = solver("run", max_iter=5)
    processes = start(tmp_path, [["ip", "netns", "exec", names[host], program("caffe"), "train", f"-solver={path}",
                                  "-ranks=3", f"-rank={rank}", f"-store={store}:29500"]
                                 for rank, (host, store) in enumerate([(0, "10.77.0.1"), (0, "127.0.0.1"), (1, "10.77.0.1")])])
    for status, said in finish(processes):
        assert status == 0, said


def test_auto_resume_goes_on_exactly(tmp_path, program, run, solver):
    """One process first, then ranks; the first start finds nothing."""
    caffe = program("caffe")
    path = solver("whole", max_iter=30)
    for status, said in finish(start_ranks(tmp_path, caffe, path, 2, "-auto_resume")):
        assert status == 0, said
    for iterations in (10, 20, 30):
        path = solver("parts", max_iter=iterations)
        results = finish(start_ranks(tmp_path, caffe, path, 2, "-auto_resume"))
        assert [status for status, _ in results] == [0, 0], results
        said = results[0][1]
        expected = (f"Restoring previous solver status from {tmp_path}/parts_iter_{iterations - 10}.solverstate"
                    if iterations > 10 else "No snapshot of")
        assert expected in said
    assert bytes_of(tmp_path, "parts", 30)["caffemodel"] == bytes_of(tmp_path, "whole", 30)["caffemodel"]
    done = run(caffe, "train", f"-solver={path}", "-auto_resume", "-snapshot=x.solverstate")
    assert done.returncode == 1 and "--snapshot and --auto_resume are both given" in done.stderr
