// Bindings of Net.
#include "caffe/net.hpp"

#include "bindings.hpp"
#include "caffe/data_supply.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/memory_data_layer.hpp"
#include "caffe/plan_report.hpp"
#include "definitions.hpp"

namespace caffe::python {
namespace {

std::shared_ptr<Net> FromMessage(const Definition& definition, Phase phase, int level,
                                 const std::vector<std::string>& stages,
                                 const NetOptions& options) {
  NetParameter param = definition.ReadNet();
  SetNetState(phase, level, stages, &param);
  return std::make_shared<Net>(param, options);
}

std::shared_ptr<Net> Build(const py::object& definition, int phase, int level,
                           const py::object& stages, const py::object& weights, bool lenient,
                           const std::optional<std::string>& precision,
                           const py::object& calibration, bool keep_all, bool keep_weights) {
  Require(Phase_IsValid(phase), "Net: phase is ", phase, "; use caffe.TRAIN or caffe.TEST");
  if (py::isinstance<py::str>(stages)) {
    throw py::type_error("Net: stages is a string; give a list of strings");
  }
  const auto names =
      stages.is_none() ? std::vector<std::string>() : py::cast<std::vector<std::string>>(stages);
  const Definition source(definition, "Net: network_file", "caffe.NetParameter");
  const std::string& file = source.file();
  const std::string weights_file = weights.is_none() ? "" : PathOf(weights);
  NetOptions options{.keep_all = keep_all,
                     .with_backward = keep_all,
                     .lenient = lenient,
                     .keep_weights = keep_weights};
  if (precision) options.precision = PrecisionOf(*precision);
  if (!calibration.is_none()) options.calibration = PathOf(calibration);
  const GilReleased release;
  if (!file.empty()) CheckReadable(file);
  if (!weights_file.empty()) CheckReadable(weights_file);
  std::shared_ptr<Net> net = file.empty()
                                 ? FromMessage(source, Phase(phase), level, names, options)
                                 : std::make_shared<Net>(file, Phase(phase), level, names, options);
  if (!weights_file.empty()) {
    WarnOfInitialWeights(weights_file, net->CopyTrainedLayersFrom(weights_file), *net);
  }
  return net;
}

std::shared_ptr<Net> BuildLegacy(const py::object& definition, const py::object& weights,
                                 int phase) {
  py::module_::import("sys").attr("stderr").attr("write")(
      "DEPRECATION WARNING - deprecated use of Python interface\n"
      "Use this instead (with the named \"weights\" parameter):\n"
      "Net('" +
      PathOf(definition) + "', " + std::to_string(phase) + ", weights='" + PathOf(weights) +
      "')\n");
  return Build(definition, phase, 0, py::none(), weights, /*lenient=*/false, std::nullopt,
               py::none(), /*keep_all=*/true, /*keep_weights=*/false);
}

py::list TextsOf(const std::vector<Net::WeightTransfer>& transfers) {
  py::list rows;
  for (const Net::WeightTransfer& one : transfers) {
    const char* const outcome = one.outcome == Net::WeightTransfer::kCopied ? "copied"
                                : one.outcome == Net::WeightTransfer::kKept ? "kept"
                                                                            : "ignored";
    rows.append(py::make_tuple(TextOf(one.layer), outcome, one.blobs, one.values));
  }
  return rows;
}

// The fast path for forward() without arguments: runs no Python code.
py::dict ForwardAll(Net& net) {
  {
    const GilReleased release;
    net.Forward();
  }
  py::dict outputs;
  for (size_t i = 0; i < net.output_names().size(); ++i) {
    outputs[TextOf(net.output_names()[i])] = DataOf(*net.output_blobs()[i]);
  }
  return outputs;
}

using FloatArray = py::array_t<float, py::array::c_style>;

void SetInputArrays(const py::object& self, const py::array& data, const py::array& labels) {
  Net& net = py::cast<Net&>(self);
  const auto layer = net.layers().empty()
                         ? nullptr
                         : std::dynamic_pointer_cast<MemoryDataLayer>(net.layers().front());
  Require(layer != nullptr, "set_input_arrays: the net's first layer must be of type MemoryData",
          net.layers().empty() ? "" : "; it is " + net.layers().front()->type());
  const auto check = [](const py::array& array, const char* name) {
    Require(py::isinstance<FloatArray>(array), "set_input_arrays: ", name, " is an array of ",
            py::cast<std::string>(py::str(array.dtype())),
            (array.flags() & py::array::c_style) != 0 ? "" : ", not C-contiguous",
            "; give np.ascontiguousarray(", name, ", dtype=np.float32)");
    Require(array.ndim() == 4, "set_input_arrays: ", name, " has ", array.ndim(),
            " axes; it must have 4 (items, channels, height, width)");
  };
  check(data, "data");
  check(labels, "labels");
  const Shape& top = net.blobs()[net.top_ids(0)[0]]->shape();
  for (int axis = 1; axis < 4; ++axis) {
    Require(data.shape(axis) == top[axis], "set_input_arrays: data has extent ", data.shape(axis),
            " on axis ", axis, ", the layer's memory_data_param says ", top[axis]);
    Require(labels.shape(axis) == 1, "set_input_arrays: labels have extent ", labels.shape(axis),
            " on axis ", axis, "; there is one label per item: shape (items, 1, 1, 1)");
  }
  Require(labels.shape(0) == data.shape(0), "set_input_arrays: ", data.shape(0), " items but ",
          labels.shape(0), " labels");
  layer->Reset(static_cast<const float*>(data.data()), static_cast<const float*>(labels.data()),
               data.shape(0));
  self.attr("_input_arrays") = py::make_tuple(data, labels);  // the layer reads them later
}

py::list Layers(const Net& net) {
  py::list views;
  for (size_t i = 0; i < net.layers().size(); ++i) {
    views.append(ViewOf(net.layers()[i], net.layer_params(static_cast<int>(i))));
  }
  return views;
}

// (layer name, its parameter blobs) for layers with parameters.
py::list Params(const Net& net) {
  py::list params;
  for (size_t i = 0; i < net.layers().size(); ++i) {
    const auto& blobs = net.layer_params(static_cast<int>(i));
    if (blobs.empty()) continue;
    params.append(
        py::make_tuple(TextOf(net.layer_names()[i]), std::make_shared<BlobVec>(BlobVec{blobs})));
  }
  return params;
}

// For a layer that reads records: (number of records, (index, name) of each record of the last
// batch); else None. Names that are not UTF-8 get surrogates.
py::object RecordsOf(const Net& net, int layer) {
  const int count = static_cast<int>(net.layers().size());
  Require(0 <= layer && layer < count, "layer ", layer, ": the net has layers 0 to ", count - 1);
  const auto supply = std::dynamic_pointer_cast<const DataSupply>(net.layers()[layer]);
  if (supply == nullptr) return py::none();
  py::list records;
  for (const SuppliedRecord& record : supply->records_of_batch())
    records.append(py::make_tuple(record.index, TextOf(record.name)));
  return py::make_tuple(supply->records_per_epoch(), records);
}

std::vector<float> LossWeights(const Net& net) {
  std::vector<float> weights;
  for (const std::string& name : net.blob_names()) weights.push_back(net.loss_weight(name));
  return weights;
}

const std::vector<int>& Ids(const Net& net, int layer, bool tops) {
  const int count = static_cast<int>(net.layers().size());
  Require(0 <= layer && layer < count, "layer ", layer, ": the net has layers 0 to ", count - 1);
  return tops ? net.top_ids(layer) : net.bottom_ids(layer);
}

void BindPlan(py::module_& module) {
  py::class_<PlanStep>(module, "PlanStep", "One step of a compiled net.")
      .def_property_readonly(
          "layers", [](const PlanStep& self) { return TextOf(self.layers); },
          "The layer it came from; several, joined by '+', when fused.")
      .def_readonly("is_backward", &PlanStep::is_backward)
      .def_readonly("op", &PlanStep::op, "What is computed, with its attributes.")
      .def_readonly("kernel", &PlanStep::kernel, "By what.")
      .def_readonly("refusals", &PlanStep::refusals, "Better kernels, and why they refused.")
      .def_readonly("operands", &PlanStep::operands, "Shapes, types and layouts.")
      .def_readonly("rounds", &PlanStep::rounds,
                    "How often it runs in a pass, each time for some items of the batch.")
      .def_readonly("precision_note", &PlanStep::precision_note,
                    "Why it is not computed in the types that are asked for; empty where it is.")
      .def_readonly("bytes", &PlanStep::bytes, "Read and written.")
      .def_readonly("flops", &PlanStep::flops);
  py::class_<PlanMemory>(module, "PlanMemory", "Bytes that a net takes, by kind.")
      .def_readonly("parameter_count", &PlanMemory::parameter_count)
      .def_readonly("parameters", &PlanMemory::parameters)
      .def_readonly("gradients", &PlanMemory::gradients)
      .def_readonly("outputs", &PlanMemory::outputs)
      .def_readonly("states", &PlanMemory::states)
      .def_readonly("activations", &PlanMemory::activations)
      .def_readonly("workspace", &PlanMemory::workspace)
      .def_property_readonly("total", Method<PlanMemory>(&PlanMemory::total));
}

}  // namespace

void BindNet(py::module_& module) {
  py::class_<Net, std::shared_ptr<Net>>(
      module, "Net", py::dynamic_attr(),
      "A compiled network.\n\n"
      "Net(network_file, phase, level=0, stages=None, weights=None, lenient=False, precision=None, "
      "calibration=None, keep_all=True, keep_weights=False)\n\n"
      "network_file: a prototxt's name, or a caffe_pb2.NetParameter (of NetSpec.to_proto(), say). "
      "phase: caffe.TRAIN or caffe.TEST. weights: a .caffemodel, or HDF5 when it ends in .h5. "
      "lenient: leave out, with a warning each, fields that are not Caffe's and layers of unknown "
      "type. precision: 'fp32', 'fp16', 'bf16', 'fp64', 'int8' or 'fake_int8' for nets that do "
      "not say themselves. calibration: the file of caffe calibrate that the last two need. "
      "keep_all: False for a net for inference, with fused steps and reused memory, of which only "
      "inputs, outputs and "
      "parameters can be read. keep_weights: True keeps weights in memory as floats even where a "
      "net for inference reads only converted copies, so that the weights file is not needed after "
      "loading.\n\n"
      "Raises IoError for files that cannot be read, InvalidArgument for wrong definitions, "
      "Unsupported for what this build lacks. One thread at a time: a second one gets "
      "InvalidArgument.")
      .def(py::init(&Build), py::arg("network_file"), py::arg("phase"), py::arg("level") = 0,
           py::arg("stages") = py::none(), py::arg("weights") = py::none(),
           py::arg("lenient") = false, py::arg("precision") = py::none(),
           py::arg("calibration") = py::none(), py::arg("keep_all") = true,
           py::arg("keep_weights") = false)
      .def(py::init(&BuildLegacy), py::arg("network_file"), py::arg("weights"), py::arg("phase"))
      .def_property_readonly(
          "name", [](const Net& self) { return TextOf(self.name()); }, "The prototxt's.")
      .def_property_readonly(
          "phase", [](const Net& self) { return static_cast<int>(self.phase()); },
          "caffe.TRAIN or caffe.TEST.")
      .def_property_readonly("_blobs", Method<Net>(&Net::blobs))
      .def_property_readonly("_blob_names",
                             [](const Net& self) { return TextsOf(self.blob_names()); })
      .def_property_readonly("_layer_names",
                             [](const Net& self) { return TextsOf(self.layer_names()); })
      .def_property_readonly("_layers", Layers)
      .def_property_readonly("_params", Params)
      .def_property_readonly("_inputs", [](const Net& self) { return TextsOf(self.input_names()); })
      .def_property_readonly("_outputs",
                             [](const Net& self) { return TextsOf(self.output_names()); })
      .def_property_readonly("_blob_loss_weights", LossWeights)
      .def("_records", RecordsOf, py::arg("layer"))
      .def("_top_ids", [](const Net& self, int layer) { return Ids(self, layer, true); })
      .def("_bottom_ids", [](const Net& self, int layer) { return Ids(self, layer, false); })
      .def("_forward", Method<Net>(&Net::ForwardFromTo), py::arg("start"), py::arg("end"),
           ReleaseGil(),
           "Runs layers start to end, inclusive, by number; returns their part of the loss.")
      .def("_backward", Method<Net>(&Net::BackwardFromTo), py::arg("start"), py::arg("end"),
           ReleaseGil(), "Runs layers start down to end, inclusive, backward.")
      .def("_forward_all_layers", ForwardAll)
      .def("_set_input_arrays", [](const py::object& self, const py::array& data,
                                   const py::array& labels) { SetInputArrays(self, data, labels); })
      .def("reshape", Method<Net>(&Net::Reshape), ReleaseGil(),
           "Compiles for the shapes that the input blobs were given. forward() does it by itself.")
      .def("clear_param_diffs", Method<Net>(&Net::ClearParamDiffs), ReleaseGil(),
           "Sets the parameters' gradients to 0; backward() adds to them.")
      .def(
          "copy_from",
          [](Net& self, const py::object& file) {
            const std::string name = PathOf(file);
            std::vector<Net::WeightTransfer> transfers;
            {
              const GilReleased release;
              CheckReadable(name);
              transfers = self.CopyTrainedLayersFrom(name);
              WarnOfInitialWeights(name, transfers, self);
            }
            return TextsOf(transfers);
          },
          py::arg("file"),
          "Loads weights by layer name: a .caffemodel, or HDF5 when it ends in .h5. Layers that "
          "only "
          "one side has are left as they are. Returns (layer, outcome, blobs, values) for each "
          "layer with weights: \"copied\", \"kept\" if the file lacks it, \"ignored\" if the net "
          "does. Raises InvalidArgument where shapes differ, and where no layer of the net takes "
          "weights from the file.")
      .def(
          "load_hdf5",
          [](Net& self, const py::object& file) {
            const std::string name = PathOf(file);
            const GilReleased release;
            CheckReadable(name);
            WarnOfInitialWeights(name, self.CopyTrainedLayersFromHDF5(name), self);
          },
          py::arg("file"), "Loads weights by layer name from HDF5, whatever the file's name.")
      .def("share_with", Method<Net>(&Net::ShareTrainedLayersWith), py::arg("net"), ReleaseGil(),
           "Uses the other net's weights, in its memory, for layers of equal name.")
      .def(
          "share", [](Net& self) { return std::shared_ptr<Net>(self.Share()); }, ReleaseGil(),
          "Another net of this definition and these input shapes that reads the same weights, in "
          "their memory: for a thread of its own. Weights may be changed while none of the nets "
          "runs. Raises InvalidArgument for a net of phase TRAIN.")
      .def_property_readonly(
          "weight_bytes", Method<Net>(&Net::weight_bytes),
          "Bytes that weights take now: parameters that are in memory, and the copies that steps "
          "read.")
      .def(
          "save",
          [](const Net& self, const py::object& file) {
            const std::string name = PathOf(file);
            const GilReleased release;
            self.Save(name);
          },
          py::arg("file"), "Writes definition and weights as a .caffemodel, whole or not at all.")
      .def(
          "save_program",
          [](Net& self, const py::object& file) {
            const std::string name = PathOf(file);
            const GilReleased release;
            self.SaveProgram(name);
          },
          py::arg("file"),
          "Writes the forward pass, compiled for the shapes that the inputs have now, with its "
          "weights: a file for the runtime library (docs/runtime.md), whole or not at all. Raises "
          "InvalidArgument for a net of phase TRAIN, Unsupported, naming the layer, for what "
          "programs do not have.")
      .def(
          "save_hdf5",
          [](const Net& self, const py::object& file, bool write_diff) {
            const std::string name = PathOf(file);
            const GilReleased release;
            self.ToHDF5(name, write_diff);
          },
          py::arg("file"), py::arg("write_diff") = false,
          "Writes the weights as HDF5; their gradients too with write_diff.")
      .def("_add_before_forward",
           [](Net& self, py::function f) { self.AddBeforeForward(KeptFunction<int>(f)); })
      .def("_add_after_forward",
           [](Net& self, py::function f) { self.AddAfterForward(KeptFunction<int>(f)); })
      .def("_add_before_backward",
           [](Net& self, py::function f) { self.AddBeforeBackward(KeptFunction<int>(f)); })
      .def("_add_after_backward",
           [](Net& self, py::function f) { self.AddAfterBackward(KeptFunction<int>(f)); })
      .def("_plan_steps", PlanSteps)
      .def("_plan_memory", [](const Net& self) { return MemoryOfPlan(self); })
      .def("_definition",
           [](const Net& self) { return py::bytes(self.definition().SerializePartialAsString()); });
  BindPlan(module);
}

}  // namespace caffe::python
