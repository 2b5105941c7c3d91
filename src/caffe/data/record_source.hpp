// RecordSource: the kind of records that batches are made of. One file per kind, in sources/.
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

class Augmentation;  // transformers/augmentation.hpp, which needs OpenCV
class Erasing;

// Opens the records, and makes the loaders that turn one into an image and its label. All calls may
// come from several threads.
class RecordSource {
 public:
  virtual ~RecordSource();
  RecordSource(const RecordSource&) = delete;
  RecordSource& operator=(const RecordSource&) = delete;

  // How records are read, in the fields of data_param whatever message they came from: batch_size,
  // order, threads, prefetch. `source` is the name for messages.
  const DataParameter& reading() const { return reading_; }
  // Crop, mirror, mean and scale: what happens to an image after its loader.
  const DatumTransformer& transformer() const { return transformer_; }
  // What follows the transformer; null: nothing.
  const Erasing* erasing() const { return erasing_.get(); }
  // How encoded images are decoded.
  ColorMode color_mode() const;

  virtual std::unique_ptr<RecordReader> Open() const = 0;
  // For one thread; must not outlive the source. Loads a record and augments it.
  std::unique_ptr<RecordLoader> MakeLoader() const;

  // Whether labels are rows of boxes in place of one number.
  virtual bool has_boxes() const { return false; }
  // Whether labels are images, a number for each pixel.
  virtual bool has_label_images() const { return false; }
  // Whether records that a former run used can be passed over: the frames of a camera cannot.
  virtual bool can_resume() const { return true; }
  // Whether loaders gain by RecordLoader::LoadAhead() of many records.
  virtual bool may_load_ahead() const { return false; }
  // Why a device cannot do the transformer's work on the records' bytes; empty where it can.
  virtual std::string WhyHostTransforms() const;
  // What to do about images of several sizes, for messages.
  virtual std::string HowToGetOneSize() const {
    return "set crop_size, resize while converting, or set batch_size: 1";
  }

 protected:
  struct Definition {
    const char* message = "data_param";  // that batch_size is a field of
    DataParameter reading;
    TransformationParameter transform;
    AnnotatedDataParameter annotated = {};
  };

  // Throws InvalidArgument for numbers out of range, IoError for a mean file that cannot be read.
  RecordSource(const Definition& definition, const BatchSourceOptions& options);

  // A loader without augmentations.
  virtual std::unique_ptr<RecordLoader> MakeRecordLoader() const = 0;

 private:
  const DataParameter reading_;
  const DatumTransformer transformer_;
  const std::vector<std::unique_ptr<Augmentation>> augmentations_;
  const RandomStream augmentation_random_;
  const std::unique_ptr<const Erasing> erasing_;
};

// data_param of a database, of which only training uses shuffle and cache. Throws InvalidArgument
// without a source.
DataParameter ReadingOfDatabase(const DataParameter& data, bool train);

}  // namespace caffe::data
