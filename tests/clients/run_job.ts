// Runs a job with the client that openapi-typescript's types make of openapi-fetch.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const assay = createClient<paths>({ baseUrl: process.env.ASSAY_URL! });

const wanted: components["schemas"]["JobIn"] = {
  personas: ["E-high"],
  tasks: ["essay"],
  models: ["simulated/sim-faithful"],
  judges: ["simulated/sim-judge"],
  instructions: [0],
  iterations: 2,
};

const submitted = await assay.POST("/v1/jobs", { body: wanted });
if (submitted.error) throw new Error(submitted.error.detail);
const path = { job_id: submitted.data.id };
for (;;) {
  const job = await assay.GET("/v1/jobs/{job_id}", { params: { path } });
  if (job.error) throw new Error(job.error.detail);
  if (job.data.status === "completed") break;
  if (job.data.finished_at) throw new Error(`the job is ${job.data.status}`);
  await new Promise((resume) => setTimeout(resume, 100));
}
const results = await assay.GET("/v1/jobs/{job_id}/results", { params: { path } });
if (results.error) throw new Error(results.error.detail);
const [cell] = results.data.cells;
const metric = cell?.metrics.acc_atom;
console.log(JSON.stringify({ job: path.job_id, acc_atom: metric?.value, interval: metric?.ci95 }));

const refused = await assay.POST("/v1/jobs", { body: { ...wanted, tasks: ["esay"] } });
console.log(JSON.stringify(refused.error?.errors?.map((field) => field.pointer)));
