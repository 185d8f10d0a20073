/* The table of a later minor: five entries more than this ABI has. */
typedef struct table {
  assay_engine_table first;
  void* more[5];
} table;
#define MINOR (ASSAY_ABI_MINOR + 3)
