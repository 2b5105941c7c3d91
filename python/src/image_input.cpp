// Class ImageInput: image files as a net's input.
#include "caffe/image_input.hpp"

#include <string_view>

#include "bindings.hpp"

namespace caffe::python {
namespace {

struct SizedInput {
  ImageInput input;
  py::ssize_t channels, height, width;
};

std::unique_ptr<SizedInput> Make(const py::object& info, int channels, int height, int width) {
  ModelInfo message;
  const auto bytes = py::cast<std::string>(info.attr("SerializePartialToString")());
  Require(message.ParseFromString(bytes), "ImageInput: info is not a ModelInfo");
  Require(height > 0 && width > 0, "ImageInput: height is ", height, " and width ", width,
          "; give positive numbers of pixels");
  return std::unique_ptr<SizedInput>(
      new SizedInput{ImageInput(message, channels, height, width), channels, height, width});
}

ImageInput::Image ReadReleased(const SizedInput& self, std::string_view file) {
  const GilReleased released;
  return self.input.Read(file);
}

py::array_t<float> Read(const SizedInput& self, const py::bytes& file) {
  const ImageInput::Image image = ReadReleased(self, std::string_view(file));
  return py::array_t<float>({self.channels, self.height, self.width}, image.values.data());
}

// Values as above, (height, width) of the image, and what the net sees: (top, left, height, width).
py::tuple ReadPlaced(const SizedInput& self, const py::bytes& file) {
  const ImageInput::Image image = ReadReleased(self, std::string_view(file));
  return py::make_tuple(
      py::array_t<float>({self.channels, self.height, self.width}, image.values.data()),
      py::make_tuple(image.height, image.width),
      py::make_tuple(image.seen_top, image.seen_left, image.seen_height, image.seen_width));
}

}  // namespace

void BindImageInput(py::module_& module) {
  py::class_<SizedInput>(
      module, "ImageInput",
      "Turns image files into a net's input, as `caffe classify` does.\n\n"
      "info: the ModelInfo with mean, scale and size of the model's images (caffe.model_info)\n"
      "channels: 3, in the order blue, green, red, or 1\n"
      "height, width: of the input, in pixels\n\n"
      "Raises InvalidArgument if they do not fit each other.")
      .def(py::init(&Make), py::arg("info"), py::arg("channels"), py::arg("height"),
           py::arg("width"))
      .def("read", &Read, py::arg("file"),
           "The image in the bytes of a file, as channels x height x width float32. It is rotated "
           "upright as its EXIF data say, resized, and its centre cropped. Raises IoError if it "
           "cannot be decoded.")
      .def("read_placed", &ReadPlaced, py::arg("file"),
           "The same, with the (height, width) of the upright image and the part of it that the "
           "net sees: (top, left, height, width) in pixels.");
}

}  // namespace caffe::python
