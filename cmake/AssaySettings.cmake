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

find_program(ASSAY_CCACHE ccache)
if(ASSAY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ASSAY_CCACHE})
endif()

add_library(assay_settings INTERFACE)
target_compile_options(assay_settings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wconversion
  -Wno-sign-conversion
  -Wno-restrict -Wno-array-bounds -Wno-stringop-overread  # false alarms of g++ 12 around std::string
  $<$<BOOL:${ASSAY_WERROR}>:-Werror>)
if(ASSAY_SANITIZE)
  target_compile_options(assay_settings INTERFACE -fsanitize=${ASSAY_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(assay_settings INTERFACE -fsanitize=${ASSAY_SANITIZE})
endif()
