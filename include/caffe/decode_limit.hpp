// Limits the memory that decoded data may take.
//
// A file of a few bytes can promise gigabytes: an image's header, an HDF5 dataset without values, a
// message of empty messages. Decoding is refused when it would take more than the limit and also
// more than 16 times the bytes of the file; plain data that is merely large is read.
#pragma once

#include <cstdint>

#include "caffe/error.hpp"
#include "caffe/export.hpp"

namespace caffe {

// The limit of this process in MiB; 1024 by default. Any thread may get and set it. Throws
// InvalidArgument unless it is positive.
CAFFE_EXPORT void SetMaxDecodedMb(int64_t mib);
CAFFE_EXPORT int64_t MaxDecodedMb();

// Largest size to which a file of `file_bytes` may be decoded.
CAFFE_EXPORT uint64_t MostDecodedBytes(uint64_t file_bytes);

// Readers call this before they allocate: throws IoError if `bytes` exceed the limit for a file,
// record or image of `file_bytes`. `what` names the data in the error text.
template <typename... Parts>
void CheckDecodedBytes(uint64_t bytes, uint64_t file_bytes, const Parts&... what) {
  if (bytes <= MostDecodedBytes(file_bytes)) return;
  throw IoError(StrCat(what..., " would take ", bytes, " bytes of memory, but comes from ",
                       file_bytes, " bytes, and the limit is ", MaxDecodedMb(),
                       " MiB; where that is not an attack, raise --max_decoded_mb "
                       "(caffe.set_max_decoded_mb in Python)"));
}

}  // namespace caffe
