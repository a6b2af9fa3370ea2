// A model that promptfoo asks, and that always says the same.
module.exports = class {
  id() {
    return "bot";
  }

  async callApi(prompt) {
    return { output: prompt.includes("shy") ? "" : "I love parties. I talk to everybody." };
  }
};
