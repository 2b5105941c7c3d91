// Converts a list of images with annotation files to a database of AnnotatedDatum records.
#include <charconv>
#include <map>
#include <random>
#include <sstream>

#include "caffe/data/readers/record_reader.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/text_file.hpp"
#include "caffe/io/text_format.hpp"
#include "tools/annotation_files.hpp"
#include "tools/image_records.hpp"
#include "tools/interruption.hpp"
#include "tools/tool_main.hpp"

DEFINE_bool(gray, false, "Treat the images as grey ones");
DEFINE_bool(shuffle, false, "Shuffle the images and their annotations");
DEFINE_uint64(shuffle_seed, 1, "Seed of the shuffling");
DEFINE_string(backend, "lmdb", "Database to write: lmdb or leveldb");
DEFINE_string(anno_type, "classification", "classification (labels) or detection (files of boxes)");
DEFINE_string(label_type, "xml", "Annotation files: xml (VOC), json (COCO) or txt");
DEFINE_string(label_map_file, "", "LabelMap prototxt with names and labels");
DEFINE_bool(check_label, false, "Refuse a label map that has a name or a label twice");
DEFINE_int32(min_dim, 0, "Length to resize the shorter side to; 0: keep");
DEFINE_int32(max_dim, 0, "Largest length of the longer side; 0: any");
DEFINE_int32(resize_width, 0, "Width to resize the images to; 0: keep");
DEFINE_int32(resize_height, 0, "Height to resize the images to; 0: keep");
DEFINE_bool(check_size, false, "Check that all images have the same size");
DEFINE_bool(encoded, false, "Store compressed images instead of pixels");
DEFINE_string(encode_type, "",
              "Type of the compressed images (png, jpg, ...); empty: each file's own");

namespace caffe::tools {
namespace {

struct Line {
  std::string path;
  std::string annotation;  // a file, or a label number
};

// Reads lines "image annotation".
std::vector<Line> ReadList(const std::string& list_path) {
  std::istringstream file(ReadTextFile(list_path));
  std::vector<Line> lines;
  int number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::istringstream parts(text);
    Line line;
    Require(static_cast<bool>(parts >> line.path >> line.annotation), list_path, ":", number,
            ": expected 'image annotation', got '", text, "'");
    lines.push_back(line);
  }
  Require(!lines.empty(), list_path, ": the list is empty; write lines 'image annotation'");
  return lines;
}

std::map<std::string, int> ReadLabels(const std::string& path) {
  if (path.empty() && FLAGS_label_type == "txt") return {};
  Require(!path.empty(), "--label_map_file is missing; give the LabelMap prototxt of the classes");
  LabelMap map;
  ReadTextProto(path, &map);
  std::map<std::string, int> labels;
  std::map<int, std::string> names;
  for (const LabelMapItem& item : map.item()) {
    const bool is_new = labels.emplace(item.name(), item.label()).second &&
                        names.emplace(item.label(), item.name()).second;
    Require(is_new || !FLAGS_check_label, path, ": '", item.name(), "' or label ", item.label(),
            " is there twice");
  }
  return labels;
}

// Parses `text`; `place` and `advice` appear in the error.
int ParseLabel(const std::string& text, const std::string& place, const char* advice) {
  int label = 0;
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, label);
  Require(error == std::errc() && parsed == end, place, ": '", text, "' is not a class index; ",
          advice);
  return label;
}

int LabelOf(const AnnotatedObject& object, const std::map<std::string, int>& labels,
            const std::string& path) {
  if (FLAGS_label_type == "txt") {
    return ParseLabel(object.name, path, "lines of text begin with the label's number");
  }
  const auto found = labels.find(object.name);
  Require(found != labels.end(), path, ": class '", object.name, "' is not in ",
          FLAGS_label_map_file);
  return found->second;
}

// Adds the objects, grouped by class, with coordinates as fractions of width and height.
void AddObjects(const ImageAnnotation& image, const std::map<std::string, int>& labels,
                const std::string& path, AnnotatedDatum* record) {
  const auto height = static_cast<float>(image.height), width = static_cast<float>(image.width);
  std::map<int, AnnotationGroup*> groups;
  for (const AnnotatedObject& object : image.objects) {
    const int label = LabelOf(object, labels, path);
    if (object.xmin >= object.xmax || object.ymin >= object.ymax || object.xmin < 0 ||
        object.ymin < 0 || object.xmax > width || object.ymax > height) {
      LOG(WARNING) << path << ": the box (" << object.xmin << ", " << object.ymin << ", "
                   << object.xmax << ", " << object.ymax << ") of a " << object.name
                   << " is empty or leaves the image of " << width << "x" << height;
    }
    AnnotationGroup*& group = groups[label];
    if (group == nullptr) {
      group = record->add_annotation_group();
      group->set_group_label(label);
    }
    Annotation* annotation = group->add_annotation();
    annotation->set_instance_id(group->annotation_size() - 1);
    NormalizedBBox* box = annotation->mutable_bbox();
    box->set_xmin(object.xmin / width);
    box->set_ymin(object.ymin / height);
    box->set_xmax(object.xmax / width);
    box->set_ymax(object.ymax / height);
    box->set_difficult(object.difficult);
  }
}

void Convert(const std::string& root, const std::string& list_path, const std::string& database) {
  const ImageRecordOptions options = Checked({.gray = FLAGS_gray,
                                              .height = FLAGS_resize_height,
                                              .width = FLAGS_resize_width,
                                              .min_dim = FLAGS_min_dim,
                                              .max_dim = FLAGS_max_dim,
                                              .encoded = FLAGS_encoded,
                                              .encode_type = FLAGS_encode_type,
                                              .check_size = FLAGS_check_size});
  const bool is_detection = FLAGS_anno_type == "detection";
  Require(is_detection || FLAGS_anno_type == "classification", "--anno_type is '", FLAGS_anno_type,
          "'; use classification or detection");
  const std::map<std::string, int> labels =
      is_detection ? ReadLabels(FLAGS_label_map_file) : std::map<std::string, int>();
  std::vector<Line> lines = ReadList(list_path);
  if (FLAGS_shuffle) {
    LOG(INFO) << "Shuffling data";
    std::shuffle(lines.begin(), lines.end(), std::mt19937_64(FLAGS_shuffle_seed));
  }
  LOG(INFO) << "A total of " << lines.size() << " images.";
  InterruptibleWriter writer(data::ParseBackend(FLAGS_backend), database);
  WriteImageRecords(lines, root, options, writer, [&](const Line& line, std::string* value) {
    AnnotatedDatum record;
    const int label = is_detection ? -1
                                   : ParseLabel(line.annotation, line.path,
                                                "for files of boxes give --anno_type=detection");
    *record.mutable_datum() = MakeDatum(root + line.path, label, options);
    const Datum& datum = record.datum();
    if (is_detection) {
      record.set_type(AnnotatedDatum::BBOX);
      const std::string file = root + line.annotation;
      ImageAnnotation image = ReadAnnotation(file, FLAGS_label_type);
      if (image.height == 0 || image.width == 0) {
        // Without extents, boxes are in pixels of the image file.
        const std::string pixels = ReadFile(root + line.path);
        const auto own = data::DecodeImage(pixels, data::ColorMode::kAsStored).extents;
        image.height = own.height, image.width = own.width;
      }
      AddObjects(image, labels, file, &record);
    }
    record.SerializeToString(value);
    return data::ImageExtents{datum.channels(), datum.height(), datum.width()};
  });
}

}  // namespace
}  // namespace caffe::tools

int main(int argc, char** argv) {
  return caffe::tools::RunTool(
      argc, argv,
      "Converts a set of images and their annotations to a database of AnnotatedDatum records.\n"
      "Usage: convert_annoset [FLAGS] ROOT_FOLDER/ LIST_FILE DB_NAME\n"
      "LIST_FILE has lines 'image annotation' (--anno_type=detection) or 'image label'; \n"
      "ROOT_FOLDER/ is put before each path.",
      3, 3, [](const std::vector<std::string>& arguments) {
        caffe::tools::RunInterruptible(
            [&] { caffe::tools::Convert(arguments[0], arguments[1], arguments[2]); });
      });
}
