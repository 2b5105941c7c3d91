// Annotation files of detection data sets, one per image: VOC's XML, COCO's JSON, or lines of text.
#pragma once

#include <boost/property_tree/json_parser.hpp>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::tools {

// One object, in pixels.
struct AnnotatedObject {
  std::string name;  // class name; in text files the label number
  float xmin = 0, ymin = 0, xmax = 0, ymax = 0;
  bool difficult = false;
};

// The annotation of one image. Height and width are 0 if the file does not give them.
struct ImageAnnotation {
  int height = 0, width = 0;
  std::vector<AnnotatedObject> objects;
};

// Reads VOC's XML: <annotation> <size> <object> <name> <difficult> <bndbox>.
inline ImageAnnotation ReadXmlAnnotation(const std::string& path) {
  boost::property_tree::ptree tree;
  boost::property_tree::read_xml(path, tree);
  ImageAnnotation image;
  image.height = tree.get("annotation.size.height", 0);
  image.width = tree.get("annotation.size.width", 0);
  for (const auto& [tag, object] : tree.get_child("annotation")) {
    if (tag != "object") continue;
    image.objects.push_back({object.get<std::string>("name"), object.get<float>("bndbox.xmin"),
                             object.get<float>("bndbox.ymin"), object.get<float>("bndbox.xmax"),
                             object.get<float>("bndbox.ymax"), object.get("difficult", 0) != 0});
  }
  return image;
}

// Reads {"image": {"height", "width"}, "annotation": [{"bbox": [x, y, width, height],
// "category_id", "iscrowd"}]}. A crowd counts as difficult.
inline ImageAnnotation ReadJsonAnnotation(const std::string& path) {
  boost::property_tree::ptree tree;
  boost::property_tree::read_json(path, tree);
  ImageAnnotation image;
  image.height = tree.get("image.height", 0);
  image.width = tree.get("image.width", 0);
  for (const auto& entry : tree.get_child("annotation")) {
    const boost::property_tree::ptree& object = entry.second;
    std::vector<float> box;
    for (const auto& number : object.get_child("bbox")) {
      box.push_back(number.second.get_value<float>());
    }
    Require(box.size() == 4, "a bbox of ", box.size(), " numbers; it has 4");
    image.objects.push_back({object.get<std::string>("category_id"), box[0], box[1],
                             box[0] + box[2], box[1] + box[3], object.get("iscrowd", 0) != 0});
  }
  return image;
}

// Reads lines "label xmin ymin xmax ymax", where the label is a number.
inline ImageAnnotation ReadTextAnnotation(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw IoError("cannot open; does the file exist?");
  ImageAnnotation image;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::istringstream parts(line);
    AnnotatedObject object;
    Require(static_cast<bool>(parts >> object.name >> object.xmin >> object.ymin >> object.xmax >>
                              object.ymax),
            "line ", number, ": expected 'label xmin ymin xmax ymax', got '", line, "'");
    image.objects.push_back(object);
  }
  return image;
}

// `type` is xml, json or txt. Throws IoError that names the file.
inline ImageAnnotation ReadAnnotation(const std::string& path, const std::string& type) {
  RequireNoPipe(path);
  try {
    return WithContext(path, [&] {
      if (type == "xml") return ReadXmlAnnotation(path);
      if (type == "json") return ReadJsonAnnotation(path);
      Require(type == "txt", "--label_type is '", type, "'; use xml, json or txt");
      return ReadTextAnnotation(path);
    });
  } catch (const boost::property_tree::file_parser_error& error) {
    throw IoError(StrCat(path, ":", error.line(), ": ", error.message()));
  } catch (const boost::property_tree::ptree_error& error) {
    throw IoError(StrCat(path, ": ", error.what()));
  }
}

}  // namespace caffe::tools
