export { type PrometheusOptions, type PrometheusRegistry, prometheus } from './registry.ts'
