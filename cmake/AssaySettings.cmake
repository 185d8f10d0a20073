# Language level, output folders and the interface target that carries our warnings.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(ASSAY_PLUGIN_DIR ${PROJECT_BINARY_DIR}/lib/assay/plugins)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)  # where a preset asks for unity builds: half the time of separate files

find_program(ASSAY_CCACHE ccache)
if(ASSAY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ASSAY_CCACHE})
endif()

add_library(assay_settings INTERFACE)
set(warnings -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wconversion -Wno-sign-conversion
  -Wno-restrict -Wno-array-bounds -Wno-stringop-overread)  # the last three: false alarms of g++ 12 around std::string
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND warnings -Wno-unknown-warning-option -Wno-missing-field-initializers)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND warnings -Wno-subobject-linkage)  # g++ takes an included source file for a header
endif()
if(ASSAY_WERROR)
  list(APPEND warnings -Werror)
endif()
target_compile_options(assay_settings INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>")
if(ASSAY_SANITIZE)
  set(sanitize -fsanitize=${ASSAY_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(assay_settings INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${sanitize}>")
  target_link_options(assay_settings INTERFACE -fsanitize=${ASSAY_SANITIZE})
endif()
