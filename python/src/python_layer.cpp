// Layers written in Python, and Python's view of the other layers.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "bindings.hpp"
#include "caffe/data_supply.hpp"
#include "caffe/io/content_mark.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe::python {
namespace {

using Blobs = std::vector<std::shared_ptr<Blob>>;

void Store(const Blob& blob, bool diff, const TensorView& view) {
  Require(blob.shape() == view.shape, "a blob of shape ", view.shape, " was reshaped to ",
          blob.shape(), "; only tops may be, in reshape() and forward()");
  const float* values = diff ? blob.cpu_diff() : blob.cpu_data();
  VisitFloat(view.dtype, [&]<typename T>(TypeTag<T>) {
    std::transform(values, values + view.count(), view.as<T>(), [](float x) { return T(x); });
  });
}

void Reshape(Blob& blob, const Shape& shape) {
  if (!(blob.shape() == shape)) blob.Reshape(shape);
}

// Reshapes the blob to the view's shape, because the user's code may have changed it.
void Load(const TensorView& view, bool diff, Blob& blob) {
  Reshape(blob, view.shape);
  float* values = diff ? blob.mutable_cpu_diff() : blob.mutable_cpu_data();
  VisitFloat(view.dtype, [&]<typename T>(TypeTag<T>) {
    std::transform(view.as<const T>(), view.as<const T>() + view.count(), values,
                   [](T x) { return static_cast<float>(static_cast<Accum<T>>(x)); });
  });
}

// An object of the user's class and its blobs. The layer owns these blobs, so that references that
// the object keeps stay valid between forward and backward, and after the net is destroyed. Values
// are copied in and out around each call.
struct Instance {
  py::object object;
  std::shared_ptr<BlobVec> params = std::make_shared<BlobVec>(BlobVec{.can_grow = true});
  // The blobs that setup() added, after the net's blobs have replaced them in `params`. They mirror
  // the net's, for layers that kept views of them.
  Blobs own_params;
  Blobs bottoms, tops;
  bool is_set_up = false;
  // reshape(), or also forward(), was already called for the pass that is about to be repeated with
  // a plan that fits.
  bool is_reshaped = false, has_run = false;

  ~Instance() {
    const GilAcquired gil;
    object = py::object();
  }

  std::vector<Shape> TopShapes() const {
    std::vector<Shape> shapes;
    for (const auto& top : tops) shapes.push_back(top->shape());
    return shapes;
  }

  void CallReshape() { Call(object.attr("reshape"), bottoms, tops); }
};

// True if a program has started Python, and not vice versa (interpreter/).
bool is_hosted = false;

void AddNote(const py::error_already_set& error, const std::string& note) {
  if (py::hasattr(error.value(), "add_note")) error.value().attr("add_note")(note);
}

// Explains why h5py's wheel fails inside a program: it uses the HDF5 that the program has loaded
// instead of its own. Empty if h5py found the version that it was built for.
std::string HintOnHdf5() {
  const py::object version =
      py::module_::import("sys").attr("modules").attr("get")("h5py.version", py::none());
  const auto tuple = [&](const char* name) { return py::getattr(version, name, py::none()); };
  const py::object built = tuple("hdf5_built_version_tuple"), found = tuple("hdf5_version_tuple");
  if (built.is_none() || found.is_none() || built.equal(found)) return "";
  const auto text = [](const py::object& numbers) {
    std::string joined;
    for (const py::handle number : numbers)
      joined += (joined.empty() ? "" : ".") + py::str(number).cast<std::string>();
    return joined;
  };
  return StrCat("\nh5py was built for HDF5 ", text(built), " and calls HDF5 ", text(found),
                ", which this program has loaded; install Debian's python3-h5py instead of the "
                "wheel, or train from Python (caffe.train)");
}

std::string TextOf(const py::error_already_set& error) {
  std::string text = error.what();
  const py::object notes = py::getattr(error.value(), "__notes__", py::tuple());
  for (const py::handle note : notes) text += "\n" + py::cast<std::string>(py::str(note));
  if (text.find("h5py") != std::string::npos) text += HintOnHdf5();
  return text;
}

// Adds the origin to a Python exception and keeps its traceback. In a program that hosts Python,
// throws an InvalidArgument with both texts instead.
template <typename Fn>
auto WithNote(const std::string& note, Fn fn) {
  try {
    return fn();
  } catch (const py::error_already_set& error) {
    if (is_hosted) throw InvalidArgument(StrCat(note, ": ", TextOf(error)));
    AddNote(error, note);
    throw;
  }
}

py::module_ Import(const std::string& module) {
  try {
    return py::module_::import(module.c_str());
  } catch (const py::error_already_set& error) {
    if (error.matches(PyExc_ModuleNotFoundError)) {
      AddNote(error, "modules are looked for in the folders of PYTHONPATH (sys.path); add its own");
    }
    throw;
  }
}

class PythonLayer final : public Layer, public DataSupply {
 public:
  explicit PythonLayer(const LayerParameter& param)
      : Layer(param), instance_(std::make_shared<Instance>()) {
    const PythonParameter& options = param.python_param();
    Require(!options.module().empty() && !options.layer().empty(),
            "python_param needs both a module and a layer (the class's name)");
    const GilAcquired gil;
    WithNote(Where("__init__"), [&] { Make(options); });
    // A bottom that is also a top is a single blob, as in-place layers expect.
    std::map<std::string, std::shared_ptr<Blob>> by_name;
    const auto blob = [&](const std::string& name) {
      std::shared_ptr<Blob>& found = by_name[name];
      if (found == nullptr) found = std::make_shared<Blob>();
      return found;
    };
    for (const std::string& name : param.bottom()) instance_->bottoms.push_back(blob(name));
    for (const std::string& name : param.top()) instance_->tops.push_back(blob(name));
  }

  LayerTraits traits() const override { return {.can_run_in_place = true}; }

  // Identifies the class's code: it may produce records, and ranks may have different files of its
  // module's name. The class's module may differ from the one that the net names, because packages
  // re-export classes.
  std::string content() const override {
    const GilAcquired gil;
    const py::object name = py::type::of(instance_->object).attr("__module__");
    const py::object module = py::module_::import("sys").attr("modules").attr("get")(name);
    const py::object file = py::getattr(module, "__file__", py::none());
    if (file.is_none()) return "";  // interactive, or built in
    const auto path = py::module_::import("os").attr("fsencode")(file).cast<std::string>();
    if (!std::filesystem::is_regular_file(path)) return "";  // in an archive, or deleted
    const ContentMark mark = MarkOfFile(path);
    return StrCat("module '", name.cast<std::string>(), "' has ", mark.bytes, " bytes, their hash ",
                  mark.hash);
  }
  uint64_t records_per_epoch() const override { return 0; }
  std::optional<double> wait_seconds() const override { return std::nullopt; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Instance& self = *instance_;
    if (self.is_reshaped) return self.TopShapes();
    const GilAcquired gil;
    for (size_t i = 0; i < bottoms.size(); ++i) Reshape(*self.bottoms[i], bottoms[i]);
    if (!self.is_set_up) {
      WithNote(Where("setup"), [&] { Call(self.object.attr("setup"), self.bottoms, self.tops); });
      self.is_set_up = true;
    }
    WithNote(Where("reshape"), [&] { self.CallReshape(); });
    self.params->can_grow = false;
    return self.TopShapes();
  }

  std::vector<ParamDeclaration> Params(const std::vector<Shape>&) const override {
    std::vector<ParamDeclaration> params;
    for (const auto& blob : instance_->params->blobs) {
      const float* values = blob->cpu_data();
      params.push_back({.shape = blob->shape(), .values = {values, values + blob->count()}});
    }
    return params;
  }

  // (bottoms, params) -> (tops, params): a layer may change its parameters in forward().
  void EmitForward(GraphBuilder& graph) const override {
    std::vector<Value*> inputs, outputs;
    for (int i = 0; i < graph.num_bottoms(); ++i) inputs.push_back(graph.bottom(i));
    for (int i = 0; i < graph.num_tops(); ++i) outputs.push_back(graph.top(i));
    AppendParams(graph, &inputs);
    AppendParams(graph, &outputs);
    graph.Emit(
        ops::HostCall{
            .what = ClassName(),
            .call = [instance = instance_, where = Where("forward")](
                        const KernelContext& ctx) { return Forward(*instance, where, ctx); },
            .rounds_results = true},
        inputs, outputs);
  }

  // (bottoms, tops, top diffs, params) -> (bottom diffs, param diffs)
  void EmitBackward(GraphBuilder& graph) const override {
    std::vector<Value*> inputs, outputs;
    for (int i = 0; i < graph.num_bottoms(); ++i) inputs.push_back(graph.bottom(i));
    for (int i = 0; i < graph.num_tops(); ++i) inputs.push_back(graph.top(i));
    for (int i = 0; i < graph.num_tops(); ++i) inputs.push_back(graph.top_diff(i));
    AppendParams(graph, &inputs);
    for (int i = 0; i < graph.num_bottoms(); ++i) outputs.push_back(graph.bottom_diff(i));
    for (int i = 0; i < NumParams(); ++i) outputs.push_back(graph.param_diff(i));
    graph.Emit(
        ops::HostCall{.what = ClassName(),
                      .call = [instance = instance_, where = Where("backward")](
                                  const KernelContext& ctx) { Backward(*instance, where, ctx); },
                      .rounds_results = true},
        inputs, outputs);
  }

  const py::object& object() const { return instance_->object; }

  // Makes self.blobs the net's blobs.
  void UseParams(const Blobs& params) const {
    if (instance_->params->blobs == params) return;
    instance_->own_params = std::exchange(instance_->params->blobs, params);
  }

 private:
  std::string ClassName() const {
    return param().python_param().module() + "." + param().python_param().layer();
  }
  std::string Where(const char* method) const {
    return StrCat("in ", method, " of layer '", name(), "' (", ClassName(), ")");
  }
  int NumParams() const { return static_cast<int>(instance_->params->blobs.size()); }

  void AppendParams(GraphBuilder& graph, std::vector<Value*>* values) const {
    for (int i = 0; i < NumParams(); ++i) values->push_back(graph.param(i));
  }

  void Make(const PythonParameter& options) {
    const py::module_ module = Import(options.module());
    if (!py::hasattr(module, options.layer().c_str())) {
      throw InvalidArgument(
          StrCat("module '", options.module(), "' has no class '", options.layer(), "'"));
    }
    const py::object type = module.attr(options.layer().c_str());
    const py::object base = py::type::of<LayerView>();
    if (!PyType_Check(type.ptr()) || PyObject_IsSubclass(type.ptr(), base.ptr()) != 1) {
      throw InvalidArgument(
          StrCat(ClassName(), " is not a subclass of caffe.Layer; derive it from that"));
    }
    for (const char* method : {"setup", "reshape", "forward"}) {
      Require(py::hasattr(type, method), ClassName(), " has no method ", method,
              "; a layer has setup, reshape and forward, and backward if it has a gradient");
    }
    instance_->object = Call(type, LayerView{param(), instance_->params});
  }

  // Returns the tops' shapes if reshape() or forward() made shapes that differ from the plan's.
  static std::vector<Shape> Forward(Instance& self, const std::string& where,
                                    const KernelContext& ctx) {
    const GilAcquired gil;
    const size_t num_bottoms = self.bottoms.size(), num_tops = self.tops.size();
    for (size_t i = 0; i < num_bottoms; ++i) Load(ctx.inputs[i], false, *self.bottoms[i]);
    LoadParams(self, ctx, num_bottoms);
    bool fits = true;
    WithNote(where, [&] {
      if (!self.is_reshaped) self.CallReshape();
      for (size_t i = 0; i < num_bottoms; ++i) {
        const bool is_top =
            std::find(self.tops.begin(), self.tops.end(), self.bottoms[i]) != self.tops.end();
        Require(is_top || self.bottoms[i]->shape() == ctx.inputs[i].shape, where, ": bottom ", i,
                " of shape ", ctx.inputs[i].shape, " was reshaped to ", self.bottoms[i]->shape(),
                " in reshape(); only tops may be");
      }
      fits = FitsPlan(self, ctx);
      if (!fits || std::exchange(self.has_run, false)) return;
      Call(self.object.attr("forward"), self.bottoms, self.tops);
      // Some layers, e.g. those that propose boxes, know the number of items only after forward().
      fits = FitsPlan(self, ctx);
      self.has_run = !fits;
    });
    if (!fits) return self.TopShapes();
    WithContext(where, [&] {
      for (size_t i = 0; i < num_tops; ++i) {
        if (ctx.has_output(static_cast<int>(i))) Store(*self.tops[i], false, ctx.outputs[i]);
      }
      for (size_t i = 0; i < self.params->blobs.size(); ++i) {
        Store(*self.params->blobs[i], false, ctx.outputs[num_tops + i]);
      }
    });
    return {};
  }

  // Returns true if the tops' shapes are the plan's. Otherwise the call will be repeated, and
  // reshape() is not called again for it.
  static bool FitsPlan(Instance& self, const KernelContext& ctx) {
    self.is_reshaped = false;
    for (size_t i = 0; i < self.tops.size(); ++i) {
      if (!(self.tops[i]->shape() == ctx.outputs[i].shape)) self.is_reshaped = true;
    }
    return !self.is_reshaped;
  }

  static void Backward(Instance& self, const std::string& where, const KernelContext& ctx) {
    const GilAcquired gil;
    const size_t num_bottoms = self.bottoms.size(), num_tops = self.tops.size();
    // Loads the net's values again, because the caller may have changed them since forward().
    for (size_t i = 0; i < num_bottoms; ++i) Load(ctx.inputs[i], false, *self.bottoms[i]);
    for (size_t i = 0; i < num_tops; ++i) {
      Load(ctx.inputs[num_bottoms + i], false, *self.tops[i]);
      Load(ctx.inputs[num_bottoms + num_tops + i], true, *self.tops[i]);
    }
    LoadParams(self, ctx, num_bottoms + 2 * num_tops);
    for (size_t i = 0; i < self.params->blobs.size(); ++i) {
      Blob& param = *self.params->blobs[i];
      const int output = static_cast<int>(num_bottoms + i);
      if (ctx.has_output(output) && ctx.accumulates(output)) {
        Load(ctx.outputs[output], true, param);
      } else {
        std::fill_n(param.mutable_cpu_diff(), param.count(), 0.0f);
      }
    }
    py::list propagate_down;
    for (size_t i = 0; i < num_bottoms; ++i) {
      propagate_down.append(ctx.has_output(static_cast<int>(i)));
    }
    WithNote(where,
             [&] { Call(self.object.attr("backward"), self.tops, propagate_down, self.bottoms); });
    WithContext(where, [&] {
      for (size_t i = 0; i < num_bottoms; ++i) {
        if (ctx.has_output(static_cast<int>(i))) Store(*self.bottoms[i], true, ctx.outputs[i]);
      }
      for (size_t i = 0; i < self.params->blobs.size(); ++i) {
        const size_t output = num_bottoms + i;
        if (ctx.has_output(static_cast<int>(output))) {
          Store(*self.params->blobs[i], true, ctx.outputs[output]);
        }
      }
    });
  }

  static void LoadParams(Instance& self, const KernelContext& ctx, size_t first) {
    for (size_t i = 0; i < self.params->blobs.size(); ++i) {
      Load(ctx.inputs[first + i], false, *self.params->blobs[i]);
    }
    for (size_t i = 0; i < self.own_params.size(); ++i) {
      Load(ctx.inputs[first + i], false, *self.own_params[i]);
    }
  }

  std::shared_ptr<Instance> instance_;
};

}  // namespace

py::object ViewOf(const std::shared_ptr<Layer>& layer, const Blobs& params) {
  if (const auto python = std::dynamic_pointer_cast<PythonLayer>(layer)) {
    python->UseParams(params);
    return python->object();
  }
  return py::cast(LayerView{layer->param(), std::make_shared<BlobVec>(BlobVec{params})});
}

void BindLayer(py::module_& module) {
  LayerRegistry::ReplaceCreator("Python", [](const LayerParameter& param) {
    return std::static_pointer_cast<Layer>(std::make_shared<PythonLayer>(param));
  });
  module.def("_set_hosted", [] { is_hosted = true; });
  const auto no_backward = [](const py::object& self, const py::args&) {
    throw py::type_error(py::cast<std::string>(py::str(py::type::of(self))) +
                         " has no method backward, but a layer below it learns; write one, or set "
                         "propagate_down: false");
  };
  py::class_<LayerView, std::shared_ptr<LayerView>>(
      module, "Layer",
      "A layer of a net, and the base of layers in Python: a class with\n\n"
      "  setup(self, bottom, top)      once; reads self.param_str, adds self.blobs\n"
      "  reshape(self, bottom, top)    before each forward; top[i].reshape(...)\n"
      "  forward(self, bottom, top)    top[i].data[...] = ...\n"
      "  backward(self, top, propagate_down, bottom)    bottom[i].diff[...] = ...\n\n"
      "bottom and top are lists of Blob. What a method raises ends forward() or backward() of the "
      "net and reaches its caller with its traceback.")
      .def(py::init<const LayerView&>(), py::arg("layer_param"))
      .def_property_readonly(
          "name", [](const LayerView& self) { return TextOf(self.param.name()); },
          "The prototxt's.")
      .def_property_readonly(
          "type", [](const LayerView& self) { return self.param.type(); },
          "The prototxt's, such as \"Convolution\".")
      .def_property_readonly(
          "phase", [](const LayerView& self) { return static_cast<int>(self.param.phase()); },
          "caffe.TRAIN or caffe.TEST.")
      .def_property_readonly(
          "param_str", [](const LayerView& self) { return self.param.python_param().param_str(); },
          "python_param { param_str }: text whose format is the layer's own.")
      .def_property_readonly(
          "blobs", [](const LayerView& self) { return self.blobs; },
          "The layer's parameters: a BlobVec.")
      .def("_layer_param",
           [](const LayerView& self) { return py::bytes(self.param.SerializePartialAsString()); })
      .def("backward", no_backward)
      .def("__repr__", [](const LayerView& self) {
        return TextOf(StrCat("<caffe.Layer '", self.param.name(), "' (", self.param.type(), ")>"));
      });
}

}  // namespace caffe::python
