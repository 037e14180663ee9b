export { openApiDocument } from './api/openapi.ts'
