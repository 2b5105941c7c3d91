// Databases of AnnotatedDatum records, images with boxes, for the AnnotatedData layer.
#pragma once

#include <memory>

#include "caffe/data/record_source.hpp"

namespace caffe::data {

// Labels are rows of boxes.
std::unique_ptr<RecordSource> MakeAnnotatedSource(const DataParameter& data,
                                                  const AnnotatedDataParameter& annotated,
                                                  const BatchSourceOptions& options);

}  // namespace caffe::data
