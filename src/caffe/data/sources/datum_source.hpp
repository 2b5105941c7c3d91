// Databases of Datum records for the Data layer.
#pragma once

#include <memory>

#include "caffe/data/record_source.hpp"

namespace caffe::data {

std::unique_ptr<RecordSource> MakeDatumSource(const DataParameter& data,
                                              const BatchSourceOptions& options);

}  // namespace caffe::data
