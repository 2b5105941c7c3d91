#include "tools/caffe/run_dir.hpp"

#include <filesystem>

#include "caffe/error.hpp"

namespace caffe::tools {

void RunDirFlags::Add(CLI::App& app) {
  app.add_option("--run_dir", folder_,
                 "Folder for all that the run leaves: definitions, metrics, curves for "
                 "TensorBoard, plan and timeline")
      ->type_name("DIR");
  app.add_option("--histograms", histograms_,
                 "Iterations between histograms of the parameters in the curves of --run_dir; 0: "
                 "none")
      ->type_name("N");
}

std::unique_ptr<RunFolder> RunDirFlags::Open(bool resumes) const {
  Require(histograms_ >= 0, "--histograms is ", histograms_, "; give iterations, or 0 for none");
  Require(histograms_ == 0 || is_given(),
          "--histograms is given without --run_dir, where they would be written");
  if (!is_given()) return nullptr;
  return std::make_unique<RunFolder>(
      folder_.empty() ? NumberedFolder(resumes) : folder_,
      RunFolder::Options{.resumes = resumes, .histograms = histograms_});
}

std::string RunDirFlags::NumberedFolder(bool resumes) const {
  const auto path_of = [&](int number) { return parent_ + "/" + std::to_string(number); };
  int number = 1;
  std::error_code ignored;
  while (std::filesystem::exists(path_of(number), ignored)) ++number;
  return path_of(resumes && number > 1 ? number - 1 : number);
}

}  // namespace caffe::tools
