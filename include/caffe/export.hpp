// CAFFE_EXPORT: what libcaffe shows to others. Everything else is hidden in it.
#pragma once

#define CAFFE_EXPORT __attribute__((visibility("default")))
