// Blob: named tensors as NumPy arrays.
#include "bindings.hpp"

namespace caffe::python {
namespace {

// The array keeps the memory alive, so it may outlive the blob and the net.
py::array ViewOfMemory(std::shared_ptr<float> memory, const Shape& shape) {
  float* const elements = memory.get();
  auto* const owner = new std::shared_ptr<float>(std::move(memory));
  const py::capsule base(owner, [](void* p) { delete static_cast<std::shared_ptr<float>*>(p); });
  return py::array_t<float>(std::vector<py::ssize_t>(shape.dims().begin(), shape.dims().end()),
                            elements, base);
}

py::tuple ShapeTuple(const Blob& blob) {
  return py::tuple(py::cast(blob.shape().dims()));
}

// Implements `blob.data = x`; NumPy checks shapes and converts types.
void Assign(const py::array& view, const py::object& values) {
  view.attr("__setitem__")(py::ellipsis(), values);
}

int LegacyExtent(const Blob& blob, int axis, const char* name) {
  Require(blob.num_axes() <= 4, name, " is for blobs of up to 4 axes; this one has shape ",
          blob.shape(), "; use shape");
  return static_cast<int>(blob.shape().LegacyExtent(axis));
}

Shape ShapeOf(const py::args& dims) {
  std::vector<int64_t> extents;
  // Accepts reshape(2, 3) and reshape((2, 3)).
  const bool is_sequence = dims.size() == 1 && py::isinstance<py::sequence>(dims[0]);
  const py::object all = is_sequence ? py::object(dims[0]) : py::object(dims);
  for (const py::handle dim : all) {
    const py::object index = py::reinterpret_steal<py::object>(PyNumber_Index(dim.ptr()));
    if (!index) throw py::error_already_set();
    extents.push_back(py::cast<int64_t>(index));
  }
  return Shape(std::move(extents));
}

std::string Describe(const Blob& blob) {
  return StrCat("<caffe.Blob ", blob.shape(), " ", Name(blob.dtype()), ">");
}

void BindBlobVec(py::module_& module) {
  py::class_<BlobVec, std::shared_ptr<BlobVec>>(
      module, "BlobVec", "The parameter blobs of a layer: weights first, then biases.")
      .def("__len__", [](const BlobVec& self) { return self.blobs.size(); })
      .def("__getitem__",
           [](const BlobVec& self, py::ssize_t index) {
             const auto count = static_cast<py::ssize_t>(self.blobs.size());
             if (index < -count || index >= count) {
               throw py::index_error(
                   StrCat("blob ", index, " of a layer with ", count, " parameter blob(s)"));
             }
             return self.blobs[index < 0 ? index + count : index];
           })
      .def("__getitem__",
           [](const BlobVec& self, const py::slice& slice) {
             // An object, because pybind11's accessor would outlive the list that it refers to.
             const py::list all = py::cast(self.blobs);
             return py::object(all[slice]);
           })
      .def(
          "__iter__",
          [](const BlobVec& self) {
            return py::make_iterator(self.blobs.begin(), self.blobs.end());
          },
          py::keep_alive<0, 1>())
      .def(
          "add_blob",
          [](BlobVec& self, const py::args& dims) {
            Require(
                self.can_grow,
                "a layer's blobs are added in setup(); then the net knows them and their number "
                "is fixed");
            self.blobs.push_back(std::make_shared<Blob>(ShapeOf(dims)));
          },
          "Adds a blob of this shape, filled with 0; for setup() of layers in Python.")
      .def("__repr__", [](const BlobVec& self) {
        std::string text = "[";
        for (const auto& blob : self.blobs) text += (text.size() > 1 ? ", " : "") + Describe(*blob);
        return text + "]";
      });
}

}  // namespace

py::array DataOf(Blob& blob) {
  return ViewOfMemory(blob.hold_cpu_data(), blob.shape());
}

void BindBlob(py::module_& module) {
  const auto data = [](Blob& self) { return DataOf(self); };
  const auto diff = [](Blob& self) { return ViewOfMemory(self.hold_cpu_diff(), self.shape()); };
  py::class_<Blob, std::shared_ptr<Blob>>(
      module, "Blob",
      "A named tensor of a net: values (data) and gradient (diff), float32 arrays of shape `shape` "
      "(N, C, H, W for images).\n\nThe arrays are views: what is written there is what the net "
      "reads. "
      "They stay valid after the net is gone, and show later results until the blob is reshaped.")
      .def(py::init([](const py::args& dims) { return std::make_shared<Blob>(ShapeOf(dims)); }),
           "Blob(2, 3): a blob of its own, of this shape, filled with 0.")
      .def_property_readonly("shape", ShapeTuple, "Extents, outermost first: a tuple of int.")
      .def_property_readonly("count", Method<Blob>(&Blob::count), "Number of elements.")
      .def_property_readonly(
          "num", [](const Blob& self) { return LegacyExtent(self, 0, "num"); }, "shape[0] or 1")
      .def_property_readonly(
          "channels", [](const Blob& self) { return LegacyExtent(self, 1, "channels"); },
          "shape[1] or 1")
      .def_property_readonly(
          "height", [](const Blob& self) { return LegacyExtent(self, 2, "height"); },
          "shape[2] or 1")
      .def_property_readonly(
          "width", [](const Blob& self) { return LegacyExtent(self, 3, "width"); }, "shape[3] or 1")
      .def_property_readonly(
          "dtype", [](const Blob& self) { return std::string(Name(self.dtype())); },
          "In which the net stores it: 'float', 'double', 'float16' or 'bfloat16'.")
      .def_property(
          "data", data, [=](Blob& self, const py::object& values) { Assign(data(self), values); },
          "Values: float32, writable. Raises InvalidArgument while another thread runs the net.")
      .def_property(
          "diff", diff, [=](Blob& self, const py::object& values) { Assign(diff(self), values); },
          "Gradients of the loss by the values: float32, writable.")
      .def_property_readonly("_gpu_data_ptr", [](const Blob&) -> size_t { return 0; })
      .def_property_readonly("_gpu_diff_ptr", [](const Blob&) -> size_t { return 0; })
      .def(
          "reshape", [](Blob& self, const py::args& dims) { self.Reshape(ShapeOf(dims)); },
          "reshape(2, 3, 32, 32). Values stay when their number does, else become 0. A net adapts "
          "to "
          "reshaped inputs in reshape() or the next forward().")
      .def(
          "__dlpack__",
          [=](Blob& self, const py::kwargs& options) {
            return data(self).attr("__dlpack__")(**options);
          },
          "The values for other libraries, without a copy: torch.from_dlpack(blob).")
      .def("__dlpack_device__", [=](Blob& self) { return data(self).attr("__dlpack_device__")(); })
      .def(
          "__array__",
          [=](Blob& self, const py::object& dtype, const py::object&) {
            return dtype.is_none() ? py::object(data(self)) : data(self).attr("astype")(dtype);
          },
          py::arg("dtype") = py::none(), py::arg("copy") = py::none())
      .def("__repr__", Describe);
  BindBlobVec(module);
}

}  // namespace caffe::python
