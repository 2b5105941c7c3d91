// DetectionFiles: result files for the VOC, COCO and ILSVRC challenges.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "caffe/io/image_sizes.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Collects the detections of a test set, image by image in the order of its name_size_file, and
// writes the files after num_test_image images (by default all of that file); then it starts again.
//
//   VOC     DIR/PREFIXclass.txt for each class: image score xmin ymin xmax ymax
//   COCO    DIR/PREFIX.json: [{"image_id", "category_id", "bbox": [x, y, width, height], "score"}]
//   ILSVRC  DIR/PREFIX.txt: image label score xmin ymin xmax ymax
//
// Coordinates are pixels of the original image. COCO needs images and classes whose names are
// numbers.
class DetectionFiles {
 public:
  struct Detection {
    int label = 0;
    double score = 0;
    ImageBox box;  // relative to the net's input, 0 to 1
  };

  // No detection has `background_label`, so its name in the label map is ignored. Creates the
  // folder. Throws InvalidArgument for missing or wrong options, and IoError.
  DetectionFiles(const SaveOutputParameter& param, int background_label);

  // Throws InvalidArgument for a label that is not in the label map, and IoError.
  void AddImage(const std::vector<Detection>& detections);

 private:
  struct Row {
    const NamedImageSize* image;
    int label;
    double score;
    ImageBox box;  // in pixels of the image
  };

  void RequireNumbers() const;
  void Write() const;
  void WriteVoc() const;
  void WriteCoco() const;
  void WriteIlsvrc() const;
  std::string PathOf(const std::string& ending) const;

  const SaveOutputParameter param_;
  std::vector<NamedImageSize> sizes_;
  std::map<int, std::string> class_names_;
  size_t images_ = 0;  // in the test set
  size_t next_ = 0;
  std::vector<Row> rows_;
};

// Null if nothing is to be saved: without output_directory or, as in SSD and with a warning,
// without label_map_file or name_size_file.
std::unique_ptr<DetectionFiles> MakeDetectionFiles(const SaveOutputParameter& param,
                                                   int background_label);

}  // namespace caffe
