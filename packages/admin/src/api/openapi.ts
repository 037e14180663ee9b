import { type Endpoint, endpoints } from './endpoints.ts'
import { problem } from './schemas/parts.ts'

const statuses: Readonly<Record<string, string>> = {
  400: 'The request is malformed, or a value is out of its range',
  403: 'Not authorised, the role is missing, or the request comes from another site',
  404: 'Not found',
  405: 'Method not allowed',
  409: 'The policies were changed in the meantime',
  413: 'The body is too large',
  415: 'The body is not JSON',
  428: 'If-Match is missing',
  503: 'The store or a broker does not answer',
}

/** The OpenAPI 3.1 description of the API, shipped as `openapi.json`. */
export function openApiDocument(): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const [name, endpoint] of Object.entries<Endpoint>(endpoints)) {
    const path = `/${endpoint.path}`
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operation(name, endpoint) }
  }
  const schemas = Object.fromEntries(
    Object.entries<Endpoint>(endpoints).flatMap(([name, { body, answer }]) => [
      ...(body ? [[`${capital(name)}Request`, body]] : []),
      [`${capital(name)}Answer`, answer],
    ]),
  )
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sluice admin',
      version: '1',
      description:
        'Limits, keys and queues of an application. Mutations need the header X-Sluice-Admin: 1. Reads support If-None-Match (304).',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: 'api/v1', description: 'Relative to where the handler is mounted' }],
    paths,
    components: {
      schemas: { ...schemas, Problem: problem },
      responses: Object.fromEntries(
        Object.entries(statuses).map(([status, description]) => {
          return [status, { description, content: json('application/problem+json', 'Problem') }]
        }),
      ),
    },
  }
}

function operation(
  name: string,
  { method, path, role, summary, query, body, ifMatch }: Endpoint,
): object {
  const errors = ['400', '403', '404', '405', '503']
  if (body) errors.push('413', '415')
  if (ifMatch) errors.push('409', '428')
  if (name === 'temporaryLimit') errors.push('409')
  const parameters = [
    ...[...path.matchAll(/\{(\w+)\}/g)].map(([, found]) => ({
      ...{ name: found, in: 'path', required: true },
      schema: { type: 'string' },
    })),
    ...Object.entries(query?.properties ?? {}).map(([field, schema]) => ({
      ...{ name: field, in: 'query', required: query?.required?.includes(field) === true },
      schema,
    })),
    ...(method === 'GET' ? [header('If-None-Match', false, 'The ETag of the last answer.')] : []),
    ...(method === 'POST' ? [header('X-Sluice-Admin', true, 'Any text, such as 1.')] : []),
    ...(ifMatch
      ? [header('If-Match', true, 'The ETag of GET policies, or its version in double quotes.')]
      : []),
  ]
  return {
    operationId: name,
    summary,
    tags: [role],
    'x-role': role,
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: { required: true, content: json('application/json', `${capital(name)}Request`) },
    }),
    responses: {
      200: {
        description: 'Done',
        ...(method === 'GET' && { headers: { ETag: { schema: { type: 'string' } } } }),
        content: json('application/json', `${capital(name)}Answer`),
      },
      ...(method === 'GET' && { 304: { description: 'Nothing has changed since If-None-Match' } }),
      ...Object.fromEntries(
        errors.sort().map((status) => [status, { $ref: `#/components/responses/${status}` }]),
      ),
    },
  }
}

function header(name: string, required: boolean, description: string): object {
  return { name, in: 'header', required, description, schema: { type: 'string' } }
}

function json(mediaType: string, schema: string): object {
  return { [mediaType]: { schema: { $ref: `#/components/schemas/${schema}` } } }
}

function capital(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1)
}
