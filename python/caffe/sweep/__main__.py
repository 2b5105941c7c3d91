"""python -m caffe.sweep: see `caffe help sweep`."""
import argparse
import dataclasses
import os
import signal
import sys

from google.protobuf import text_format

from .. import InvalidArgument, IoError, get_solver, init_log
from .._counted import counted
from .._output import run_command
from .._packages import need
from ..net_files import expanded_text
from ..proto import caffe_pb2

_TRIALS = 64


def _parser():
    parser = argparse.ArgumentParser(prog="caffe sweep", description=__doc__)
    parser.add_argument("solver", help="solver prototxt, or the folder of a sweep")
    parser.add_argument("parameters", nargs="*")
    parser.add_argument("--program", default="caffe")
    parser.add_argument("--working", default="", help="folder at which paths in the solver begin")
    parser.add_argument("--output", default="sweep")
    parser.add_argument("--metric", default="")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--gpus", default="")
    parser.add_argument("--sampler", default="")
    parser.add_argument("--pruner", default="")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--precision", default="")
    parser.add_argument("--resume", action="store_true")
    return parser


def _read(file, is_solver=False):
    """The text of a prototxt, with the files that it includes."""
    try:
        return expanded_text(file, is_solver)
    except IoError:
        raise
    except OSError as error:
        raise IoError(f"{file}: {error.strerror}") from None


def _texts(file):
    """The texts of a solver and of the nets that it names, for the sweep's mark."""
    texts = [_read(file, is_solver=True)]
    param = caffe_pb2.SolverParameter()
    text_format.Parse(texts[0], param, allow_unknown_field=True)
    return texts + [_read(name) for name in (param.net, param.train_net, *param.test_net) if name]


def _metric(solver, wanted):
    """The output by which trials are compared, and whether smaller is better."""
    if not solver.test_nets:
        raise InvalidArgument("the solver tests nothing; trials are compared by an output of its test net, so give it one: test_iter, "
                              "test_interval and a data layer of phase TEST")
    net = solver.test_nets[0]
    types = {top: layer.type for layer in net.definition.layer for top in layer.top}
    outputs = ["detection_eval" if types.get(name) == "DetectionEvaluate" else name for name in net.outputs]
    metric = wanted or solver.param.metric or next((name for name in ("accuracy", "detection_eval", "loss") if name in outputs), "")
    if metric.partition("[")[0] not in outputs:
        raise InvalidArgument(f"the test net has no output '{metric}' to compare trials by; give one of these as --metric: {', '.join(outputs)}")
    param = solver.param
    if param.HasField("metric_falls") and metric == param.metric:
        return metric, param.metric_falls
    # As the solver chooses its best model: the mean average precision is not a loss, though its output may have a weight.
    return metric, metric != "detection_eval" and net.blob_loss_weights.get(metric.partition("[")[0], 0) != 0


def _first_point(parameters):
    """The first value of each field whose condition holds."""
    first = {}
    for parameter in parameters:
        if parameter.holds(first):
            kind = parameter.distribution
            first[parameter.field] = kind.choices[0] if hasattr(kind, "choices") else kind.low
    return first


def _continued(definition, options):
    """The definition of a sweep that is continued, as solver and net are now. Options that are given have to be its own."""
    from .study import digest_of

    fields = {name: getattr(options, name) for name in ("metric", "sampler", "pruner", "seed", "precision") if getattr(options, name) not in ("", None)}
    wanted = dataclasses.replace(definition, **fields)
    wanted.trials = options.trials or definition.trials
    if definition.precision is None:  # not known of sweeps of version 0.3
        wanted.precision = options.precision or None
    wanted.digest = digest_of(*_texts(options.solver), wanted.precision or "")
    return wanted


def _definition(options):
    """The sweep that the options describe, checked against the solver."""
    from .space import count_at_most, grid, read_parameters
    from .study import Definition, digest_of

    if not os.path.exists(options.solver):
        raise IoError(f"{options.solver}: there is no such file or folder; give a solver, a model's folder, or the folder of a sweep")
    parameters = read_parameters(options.parameters)
    if not parameters:
        raise InvalidArgument("nothing varies; name fields, as in caffe sweep solver.prototxt base_lr=0.001..0.1:log")
    trials = options.trials
    # Other samplers would train some of a few settings again and again. The choice does not depend on --trials, which may grow.
    sampler = options.sampler or ("grid" if count_at_most(parameters) <= _TRIALS else "tpe")
    if trials is None:
        trials = len(grid(parameters)) if sampler == "grid" else _TRIALS
    solver = get_solver(options.solver, set={field: str(value) for field, value in _first_point(parameters).items()})
    metric, falls = _metric(solver, options.metric)
    param, last = solver.param, solver.max_iter
    interval = param.test_interval or (last // param.max_epoch if param.max_epoch else last)
    return Definition(solver=options.solver, parameters=options.parameters, metric=metric, falls=falls, trials=trials,
                      seed=1 if options.seed is None else options.seed, sampler=sampler, pruner=options.pruner or "halving", first=max(1, min(interval, last)), last=last,
                      digest=digest_of(*_texts(options.solver), options.precision), precision=options.precision,
                      working=os.path.relpath(os.getcwd(), options.output)), param


def check(*words):
    """Raises Error if `caffe sweep WORDS` would be refused, in the folder of the solver."""
    need("optuna")
    _definition(_parser().parse_args(list(words)))


def _show(study, file):
    from . import page, report

    page.write_page(study, file)
    print(report.table(study))
    print(f"\nwritten: {file}")


def _run(options):
    need("optuna")
    if options.trials is not None and options.trials < 1:
        raise InvalidArgument(f"--trials is {options.trials}; give 1 or more")
    from .runner import Runner, make_places
    from .study import Study

    output = os.path.abspath(options.output)
    if os.path.isdir(options.solver):
        output = os.path.abspath(options.solver)
        if options.parameters:
            raise InvalidArgument(f"{options.solver}: is a folder; give the solver's file, or no fields, to see or --resume the sweep in it")
        study = Study(output)
        if not options.resume:
            _show(study, os.path.join(output, "sweep.html"))
            return
        options.solver = study.definition.solver
        options.working = os.path.join(output, study.definition.working) if study.definition.working else ""
        _enter(options)
        wanted, param = _continued(study.definition, options), get_solver(options.solver).param
        study = Study(output, wanted)
    else:
        _enter(options)
        wanted, param = _definition(options)
        study = Study(output, wanted)
    command = [options.program, "train", f"--solver={options.solver}", "--set", f"metric={wanted.metric}"]
    if param.random_seed < 0:
        command += ["--set", f"random_seed={wanted.seed}"]
    if wanted.precision:
        command.append(f"--precision={wanted.precision}")
    places = make_places(options.jobs, [gpu for gpu in options.gpus.split(",") if gpu])
    print(f"{counted(wanted.trials, 'trial')} in {output}, by {wanted.metric}; Ctrl-C stops, the same command continues", flush=True)
    Runner(study, command, os.getcwd(), places, lambda text: print(text, flush=True)).run()
    _show(study, os.path.join(output, "sweep.html"))


def _enter(options):
    if options.working:
        os.chdir(options.working)


def main(words=None):
    """Returns the exit status."""
    options = _parser().parse_args(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        init_log(2)  # the log of each training is in its folder
    except InvalidArgument:
        pass  # the caller has started it
    return run_command("sweep", lambda: _run(options), (text_format.ParseError,))


if __name__ == "__main__":
    sys.exit(main())
