"""Models of PyTorch as ONNX models, by PyTorch itself.

    net.pt2                     a program of torch.export
    net.pt, .pth, .ts           a script of torch.jit
    weights.pth, .safetensors   weights alone, with the call that makes their module

Scripts and programs hold no Python code. A file that holds a whole pickled module is refused, because reading it runs code of the file.
"""
import ast
import importlib
import os
import pickle
import warnings
import zipfile

from .. import InvalidArgument, IoError, Unsupported
from .._packages import need

_ENDINGS = (".pt", ".pth", ".pt2", ".ts", ".torchscript", ".ckpt", ".bin", ".safetensors")
_NESTED = ("state_dict", "model_state_dict", "model", "net")  # entries of checkpoints that hold the weights
_WRAPPERS = ("module.", "_orig_mod.", "model.")  # before all names, by DataParallel, torch.compile and Lightning
_OPSET = 18


def is_torch(file):
    """True for files that to_onnx reads, by the end of their name."""
    return os.path.splitext(file)[1].lower() in _ENDINGS


def to_onnx(file, call, shapes, output):
    """Writes an ONNX model.

    file: of PyTorch, or "" for the weights that the call itself loads
    call: `package.module:function(keyword=value, ...)`, which makes the module; "" for a script or a program
    shapes: [(name, shape)] of the inputs in their order; they are not needed for programs of torch.export

    Raises Unsupported without PyTorch, IoError for files that cannot be read, InvalidArgument for what does not fit.
    """
    torch = need("torch", "reading a model of PyTorch")
    if file and not os.path.isfile(file):
        raise IoError(f"{file}: no such file")
    kind = _kind(file) if file else "weights"
    if call and kind != "weights":
        raise InvalidArgument(f"--module is {call}, but {file} is a {kind} that needs none")
    if kind == "program":
        _export_program(torch, file, output)
        return
    if not shapes:
        raise InvalidArgument(f"{file or call}: does not say the shape of its input; give it, as in --shape=1,3,224,224")
    if kind == "script":
        module = _read(lambda: torch.jit.load(file, map_location="cpu"), file, "script of torch.jit")
    else:
        module = _made(torch, file, call)
    _export(torch, module.eval(), shapes, output, file or call)


def _kind(file):
    """"program", "script" or "weights"."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = {name.partition("/")[2] for name in archive.namelist()}
    except zipfile.BadZipFile:
        return "weights"  # safetensors, and what torch.save wrote before 1.6
    except OSError as error:
        raise IoError(f"{file}: {error.strerror or error}") from None
    if any(name.startswith("code/") for name in names):
        return "script"
    return "program" if any(name.startswith(("models/", "serialized_exported_program")) for name in names) else "weights"


def _read(read, file, what):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return read()
    except (RuntimeError, ValueError, OSError, EOFError, KeyError) as error:
        raise IoError(f"{file}: cannot be read as a {what}: {_first_line(error)}") from None


def _first_line(error):
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _made(torch, file, call):
    """The module that the call makes, with the weights of the file."""
    if not call:
        raise InvalidArgument(f"{file}: holds weights, but not what is computed with them; name the function that makes the module, as in "
                              "--module='torchvision.models:resnet18(num_classes=10)'")
    module = _called(call)
    if not isinstance(module, torch.nn.Module):
        raise InvalidArgument(f"--module={call}: gives a {type(module).__name__}, no torch.nn.Module")
    if file:
        weights = _weights(torch, file)
        try:
            module.load_state_dict(weights)
        except RuntimeError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise InvalidArgument(f"{file}: does not fit {call}: {' '.join(lines[1:4]) or lines[0]}"[:300]) from None
    return module


def _called(call):
    """Calls `package.module:function(keyword=value, ...)`; without brackets, with no argument."""
    place, _, rest = call.partition(":")
    help_text = f"--module={call}: is not a call; give package.module:function(keyword=value), as in torchvision.models:resnet18(num_classes=10)"
    try:
        tree = ast.parse(rest if "(" in rest else rest + "()", mode="eval").body
        name = tree.func.id if isinstance(tree.func, ast.Name) else None
        arguments = [ast.literal_eval(argument) for argument in tree.args]
        keywords = {keyword.arg: ast.literal_eval(keyword.value) for keyword in tree.keywords}
    except (SyntaxError, ValueError, AttributeError):
        raise InvalidArgument(help_text) from None
    if name is None or None in keywords or not all(part.isidentifier() for part in place.split(".")):
        raise InvalidArgument(help_text)
    try:
        function = getattr(importlib.import_module(place), name)
    except ImportError as error:
        raise InvalidArgument(f"--module={call}: {error}; modules are looked for in PYTHONPATH too") from None
    except AttributeError:
        raise InvalidArgument(f"--module={call}: module {place} has no '{name}'") from None
    try:
        return function(*arguments, **keywords)
    except (TypeError, ValueError, KeyError, RuntimeError, OSError) as error:
        raise InvalidArgument(f"--module={call}: {_first_line(error)}") from None


def _weights(torch, file):
    """The tensors in a file, by name."""
    if file.lower().endswith(".safetensors"):
        load_file = need("safetensors.torch", f"{file}:").load_file
        return _read(lambda: load_file(file), file, "safetensors file")
    try:
        content = _read(lambda: torch.load(file, map_location="cpu", weights_only=True), file, "file of torch.save")
    except pickle.UnpicklingError:
        raise InvalidArgument(f"{file}: holds Python objects, and reading them runs code of the file; save the weights alone with "
                              "torch.save(net.state_dict(), file), or the net with torch.export.save") from None
    for name in _NESTED:
        if isinstance(content, dict) and isinstance(content.get(name), dict):
            content = content[name]
    if not isinstance(content, dict) or not content or not all(isinstance(value, torch.Tensor) for value in content.values()):
        raise InvalidArgument(f"{file}: holds no weights by name; save them with torch.save(net.state_dict(), file)")
    for wrapper in _WRAPPERS:
        if all(name.startswith(wrapper) for name in content):
            content = {name[len(wrapper):]: value for name, value in content.items()}
    return content


def _export_program(torch, file, output):
    program = _read(lambda: torch.export.load(file), file, "program of torch.export")
    _written(lambda: torch.onnx.export(program, (), output, dynamo=True, external_data=False, verbose=False), file)


def _export(torch, module, shapes, output, what):
    arguments = tuple(torch.zeros(shape) for _, shape in shapes)
    names = [name or f"input{index or ''}" for index, (name, _) in enumerate(shapes)]
    with torch.no_grad():
        try:
            results = module(*arguments)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            text = ", ".join("x".join(map(str, shape)) for _, shape in shapes)
            raise InvalidArgument(f"{what}: cannot compute inputs of {text}: {_first_line(error)}") from None
        count = 1 if isinstance(results, torch.Tensor) else len(results)
        outputs = [f"output{index or ''}" for index in range(count)]
        _written(lambda: torch.onnx.export(module, arguments, output, opset_version=_OPSET, dynamo=False, input_names=names, output_names=outputs), what)


def _written(write, what):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            write()
        except ImportError as error:
            raise Unsupported(f"{what}: PyTorch needs another package to write ONNX: {error}") from None
        except Exception as error:  # pylint: disable=broad-except  # PyTorch's exporter raises what its passes raise
            raise Unsupported(f"{what}: PyTorch cannot write it as ONNX: {_first_line(error)}") from None
