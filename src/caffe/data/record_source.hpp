// RecordSource: a kind of records for batches. One file per kind, in sources/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "caffe/core/philox.hpp"
#include "caffe/data/batch_source_options.hpp"
#include "caffe/data/readers/record_reader.hpp"
#include "caffe/data/record_loader.hpp"
#include "caffe/data/transformers/datum_transformer.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

class Augmentation;  // in transformers/augmentation.hpp, which needs OpenCV
class Erasing;

// Opens the records, and creates loaders that convert one to an image and its label. Thread-safe.
class RecordSource {
 public:
  virtual ~RecordSource();
  RecordSource(const RecordSource&) = delete;
  RecordSource& operator=(const RecordSource&) = delete;

  // The reading options as fields of data_param, whichever message they came from: batch_size,
  // order, threads, prefetch. `source` is the name for messages.
  const DataParameter& reading() const { return reading_; }
  // Crop, mirror, mean and scale, applied to the loader's image.
  const DatumTransformer& transformer() const { return transformer_; }
  // Applied after the transformer; null if off.
  const Erasing* erasing() const { return erasing_.get(); }
  // How encoded images are decoded.
  ColorMode color_mode() const;

  virtual std::unique_ptr<RecordReader> Open() const = 0;
  // Creates a loader for one thread that loads and augments records; it must not outlive the
  // source.
  std::unique_ptr<RecordLoader> MakeLoader() const;

  // True if labels are rows of boxes instead of a number.
  virtual bool has_boxes() const { return false; }
  // True if labels are images, with a number for each pixel.
  virtual bool has_label_images() const { return false; }
  // True if records of an earlier run can be skipped; frames of a camera cannot.
  virtual bool can_resume() const { return true; }
  // True if RecordLoader::LoadAhead() may speed up loading.
  virtual bool may_load_ahead() const { return false; }
  // Returns why a device cannot transform the records' bytes; empty if it can.
  virtual std::string WhyHostTransforms() const;
  // Advice on images of different sizes, for messages.
  virtual std::string HowToGetOneSize() const {
    return "set crop_size, resize while converting, or set batch_size: 1";
  }

 protected:
  struct Definition {
    const char* message = "data_param";  // the message that contains batch_size
    DataParameter reading;
    TransformationParameter transform;
    AnnotatedDataParameter annotated = {};
  };

  // Throws InvalidArgument for numbers out of range, IoError for an unreadable mean file.
  RecordSource(const Definition& definition, const BatchSourceOptions& options);

  // Creates a loader without augmentations.
  virtual std::unique_ptr<RecordLoader> MakeRecordLoader() const = 0;

 private:
  const DataParameter reading_;
  const DatumTransformer transformer_;
  const std::vector<std::unique_ptr<Augmentation>> augmentations_;
  const RandomStream augmentation_random_;
  const std::unique_ptr<const Erasing> erasing_;
};

// The data_param of a database; shuffle and cache apply only to training. Throws InvalidArgument if
// there is no source.
DataParameter ReadingOfDatabase(const DataParameter& data, bool train);

}  // namespace caffe::data
