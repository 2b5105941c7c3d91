// Writes the size of each image of a list, for DetectionOutput's name_size_file.
#include <filesystem>
#include <map>
#include <sstream>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/text_file.hpp"
#include "tools/tool_main.hpp"

DEFINE_string(name_id_file, "", "Lines \"stem id\": write the id instead of the file's stem");

namespace caffe::tools {
namespace {

std::map<std::string, std::string> ReadIds(const std::string& path) {
  std::map<std::string, std::string> ids;
  if (path.empty()) return ids;
  std::istringstream file(ReadTextFile(path));
  for (std::string name, id; file >> name >> id;) {
    Require(ids.emplace(name, id).second, path, ": '", name, "' is there twice");
  }
  return ids;
}

void WriteSizes(const std::string& root, const std::string& list, const std::string& output) {
  const std::map<std::string, std::string> ids = ReadIds(FLAGS_name_id_file);
  std::istringstream lines(ReadTextFile(list));
  data::ImageDecoder decoder(data::ColorMode::kColor);
  std::ostringstream sizes;
  int64_t count = 0;
  for (std::string line; std::getline(lines, line);) {
    std::string image;
    if (!(std::istringstream(line) >> image)) continue;
    const std::string path = root + image;
    const std::string bytes = ReadFile(path);
    const data::ImageExtents extents =
        WithContext(path, [&] { return decoder.ReadExtents(bytes); });
    std::string stem = std::filesystem::path(image).stem();
    if (!ids.empty()) {
      const auto found = ids.find(stem);
      Require(found != ids.end(), FLAGS_name_id_file, ": has no id for '", stem, "'");
      stem = found->second;
    }
    sizes << stem << " " << extents.height << " " << extents.width << "\n";
    if (++count % 1000 == 0) LOG(INFO) << "Processed " << count << " files.";
  }
  WriteFileAtomically(output, sizes.str());
  LOG(INFO) << "Processed " << count << " files.";
}

}  // namespace
}  // namespace caffe::tools

int main(int argc, char** argv) {
  return caffe::tools::RunTool(argc, argv,
                               "Writes \"stem height width\" for each image of a list.\n"
                               "Usage: get_image_size [FLAGS] ROOTFOLDER/ LISTFILE OUTFILE",
                               3, 3, [](const std::vector<std::string>& arguments) {
                                 caffe::tools::WriteSizes(arguments[0], arguments[1], arguments[2]);
                               });
}
