// CAFFE_EXPORT: marks the symbols that libcaffe exports. All others are hidden.
#pragma once

#ifndef CAFFE_EXPORT  // empty in the runtime library, which exports none of these
#define CAFFE_EXPORT __attribute__((visibility("default")))
#endif
