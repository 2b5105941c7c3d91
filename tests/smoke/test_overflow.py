"""FLOAT16 gradients that overflow on purpose: adaptive scaling recovers; without it the error says where."""
import re

HALF = "default_forward_type: FLOAT16 default_backward_type: FLOAT16"
WEIGHT = 1e7  # loss weight; gradients above 65504 are infinite in FLOAT16


def overflowing(tmp_path, solver, name, lines):
    net = (tmp_path / "net.prototxt").read_text().replace('type: "SoftmaxWithLoss"',
                                                          f'type: "SoftmaxWithLoss" loss_weight: {WEIGHT}')
    (tmp_path / f"{name}.net").write_text(f"{HALF} {lines}\n{net}")
    return solver(name, net=f'"{tmp_path}/{name}.net"', base_lr=0.01 / WEIGHT, weight_decay=0.001 * WEIGHT,
                  max_iter=200, display=20, average_loss=20)


def test_adaptive_scaling_recovers(tmp_path, solver, program, run):
    file = overflowing(tmp_path, solver, "adaptive", "global_grad_scale_adaptive: true")
    done = run(program("caffe"), "train", f"--solver={file}")
    assert done.returncode == 0, done.stderr
    skipped = re.findall(r"gradients are not finite at gs = (\S+); step skipped \((\d+) so far\)", done.stderr)
    assert skipped and [int(count) for _, count in skipped] == list(range(1, len(skipped) + 1))
    losses = [float(loss) for loss in re.findall(r"Iteration \d+ \(.*loss = (\S+)", done.stderr)]
    scales = [float(scale) for scale in re.findall(r", gs = (\S+)", done.stderr)]
    assert losses[-1] < losses[0]
    assert scales[0] == 1 and scales[-1] < 0.1


def test_without_it_the_error_names_the_place(tmp_path, solver, program, run):
    done = run(program("caffe"), "train", f"--solver={overflowing(tmp_path, solver, 'plain', '')}")
    assert done.returncode == 1
    assert re.search(r"the loss of iteration \d+ is not a number: \w+ '?[\w.]+'? is not finite at element \d+", done.stderr), \
        done.stderr[-500:]
